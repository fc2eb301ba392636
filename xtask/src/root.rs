//! Where the project is, and which files belong to it.

use crate::Failure;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// The project's files, relative to its folder, in order: those that git knows or would add;
/// outside of git, all that are not hidden and not built.
pub(crate) fn files() -> Result<Vec<PathBuf>, Failure> {
    let mut files = match git_files() {
        Some(files) => files,
        None => {
            let mut files = Vec::new();
            walk(Path::new(""), &mut files)?;
            files
        }
    };
    // What has been removed but not committed yet is listed by git.
    files.retain(|path| root().join(path).is_file());
    files.sort();
    files.dedup();
    Ok(files)
}

fn git_files() -> Option<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let output = git.current_dir(root()).output().ok()?;
    let list = String::from_utf8(output.stdout).ok()?;
    let files: Vec<_> = list.split_terminator('\0').map(PathBuf::from).collect();
    (output.status.success() && !files.is_empty()).then_some(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in fs::read_dir(root().join(folder))? {
        let entry = entry?;
        let name = entry.file_name();
        let is_folder = entry.file_type()?.is_dir();
        if is_folder && !name.to_string_lossy().starts_with('.') && name != "target" {
            walk(&folder.join(name), files)?;
        } else if !is_folder {
            files.push(folder.join(name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_find_the_sources() {
        let mut walked = Vec::new();
        walk(Path::new(""), &mut walked).unwrap();
        for files in [files().unwrap(), walked] {
            assert!(files.contains(&Path::new("xtask").join("src").join("root.rs")));
            assert!(!files.iter().any(|path| path.starts_with("target")));
        }
    }
}
