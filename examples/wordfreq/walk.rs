//! Finding the files.

use super::console::{Console, Shown};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walkdir::{DirEntry, WalkDir};

/// Gives every regular file at and below `paths` to `visit`, with its size as far as the progress
/// bar needs it. Returns how many paths and directories could not be read; each has had its line.
///
/// Symbolic links are not followed. Other special files are ignored below a path, and an error as
/// a path.
///
/// An error of `visit` ends the walk.
pub(crate) fn walk<E>(
    paths: &[PathBuf],
    console: &Console,
    mut visit: impl FnMut(Arc<Path>, u64) -> Result<(), E>,
) -> (u64, Result<(), E>) {
    let mut failed = 0;
    for path in paths {
        let result = walk_one(path, console, &mut failed, &mut visit);
        if result.is_err() {
            return (failed, result);
        }
    }
    (failed, Ok(()))
}

fn walk_one<E>(
    path: &Path,
    console: &Console,
    failed: &mut u64,
    visit: &mut impl FnMut(Arc<Path>, u64) -> Result<(), E>,
) -> Result<(), E> {
    let mut fail = |path: &Path, error: &dyn Display| {
        *failed += 1;
        console.line(format_args!("can't read {}: {error}", Shown(path)));
    };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => {
            fail(path, &error);
            return Ok(());
        }
    };
    if metadata.is_symlink() {
        let path = Shown(path);
        console.line(format_args!(
            "{path} is a symbolic link and is not followed"
        ));
        return Ok(());
    }
    if !metadata.is_dir() && !metadata.is_file() {
        fail(path, &"it is neither a file nor a directory");
        return Ok(());
    }
    for entry in WalkDir::new(path).follow_root_links(false) {
        match entry {
            Ok(entry) if entry.file_type().is_file() => {
                let size = expected_size(&entry, console);
                visit(entry.into_path().into(), size)?;
            }
            Ok(_) => {}
            Err(error) => {
                let path = error.path().unwrap_or(path);
                match error.io_error() {
                    Some(error) => fail(path, error),
                    None => fail(path, &error),
                }
            }
        }
    }
    Ok(())
}

fn expected_size(entry: &DirEntry, console: &Console) -> u64 {
    if !console.has_progress() {
        return 0;
    }
    // A file that has gone meanwhile is reported when it is read.
    entry.metadata().map_or(0, |metadata| metadata.len())
}
