//! The files of a run. The driver tries them before the first run, so a missing folder does not
//! show only after an hour.

use super::lines::Results;
use std::env;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Where the report and the figures go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outputs {
    /// The folder of the report.
    pub(super) folder: PathBuf,
    /// The file of the figures.
    pub(super) json: PathBuf,
}

impl Outputs {
    /// Makes the folder, and opens every file once, without changing existing files.
    ///
    /// # Errors
    /// The path of the file, and why it can't be written.
    pub(super) fn prepare(folder: Option<&Path>, json: Option<&Path>) -> Result<Self, String> {
        let folder = folder.map_or_else(default_folder, Path::to_owned);
        let json = json.map_or_else(|| folder.join("results.jsonl"), Path::to_owned);
        fs::create_dir_all(&folder).map_err(|error| refused(&folder, &error))?;
        let outputs = Self { folder, json };
        for file in [&outputs.markdown(), &outputs.json] {
            try_write(file)?;
        }
        Ok(outputs)
    }

    /// Writes the figures.
    ///
    /// # Errors
    /// The path of the file, and why it can't be written.
    pub(super) fn write_json(&self, results: &Results) -> Result<(), String> {
        let mut text = Vec::new();
        let written = results.write(&mut text);
        written.map_err(|error| refused(&self.json, &error))?;
        write(&self.json, &text)
    }

    /// Returns the path of the report.
    pub(super) fn markdown(&self) -> PathBuf {
        self.folder.join("report.md")
    }
}

/// Checks that the file can be written; the file stays as it is.
///
/// # Errors
/// The path of the file, and why it can't be written.
pub(super) fn try_write(path: &Path) -> Result<(), String> {
    let was_there = path.exists();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| refused(path, &error))?;
    if !was_there {
        fs::remove_file(path).map_err(|error| refused(path, &error))?;
    }
    Ok(())
}

/// Writes a file at once: a reader sees the old file or the new file. A pipe, a device or a link is
/// written directly.
///
/// # Errors
/// The path of the file, and why it can't be written.
pub(super) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    let is_plain = fs::symlink_metadata(path).map_or(true, |found| found.is_file());
    let written = match path.file_name() {
        Some(name) if is_plain => {
            let beside = path.with_file_name(format!(".{}.new", name.to_string_lossy()));
            fs::write(&beside, content).and_then(|()| fs::rename(&beside, path))
        }
        _ => fs::write(path, content),
    };
    written.map_err(|error| refused(path, &error))
}

/// Returns the folder of the workspace.
pub(super) fn root() -> &'static Path {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
    benches.parent().unwrap_or(benches)
}

fn default_folder() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root().join(target).join("bench")
}

fn refused(path: &Path, error: &io::Error) -> String {
    format!("can't write {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Outputs::prepare(Some(&file.join("folder")), None).unwrap_err();
        assert!(
            error.starts_with("can't write ") && error.contains("file"),
            "{error}"
        );
        let json = dir.path().join("nowhere").join("r.jsonl");
        let error = Outputs::prepare(Some(dir.path()), Some(&json)).unwrap_err();
        assert!(error.contains(&json.display().to_string()), "{error}");
    }
}
