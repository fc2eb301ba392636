//! The project's folder, its target folder, and its files.

use crate::Failure;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The test program with most of a crate's files in `tests`, each as a module.
pub(crate) const IT: &str = "it";

/// A copy of the workspace: this workspace, or a copy that is built separately.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    /// Where cargo builds it.
    pub(crate) target: PathBuf,
}

impl Tree {
    /// Returns the workspace of this program.
    pub(crate) fn own() -> Self {
        let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        Self {
            root: root().to_owned(),
            target: root().join(target),
        }
    }

    /// The folder of a package.
    pub(crate) fn package(&self, package: &str) -> PathBuf {
        let folder = package.trim_start_matches("ganger-");
        self.root.join("crates").join(folder)
    }

    /// Returns the package's test program for a file in `tests`: the file's own, or the program of
    /// many files.
    pub(crate) fn program<'a>(&self, package: &str, file: &'a str) -> &'a str {
        let tests = self.package(package).join("tests");
        let is_its_own = tests.join(file).join("main.rs").is_file();
        if is_its_own || tests.join(file).with_extension("rs").is_file() {
            file
        } else {
            IT
        }
    }
}

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// Returns the project's files, relative to its folder, in order: files that git knows or would
/// add; outside of git, all files that are not hidden and not built.
pub(crate) fn files() -> Result<Vec<PathBuf>, Failure> {
    let mut files = match git_files() {
        Some(files) => files,
        None => walk(root())?,
    };
    // Git lists files whose removal is not committed yet.
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

/// Returns all files below `root` that are not hidden and not built, relative to `root`.
pub(crate) fn walk(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name();
            let path = folder.join(&name);
            if !entry.file_type()?.is_dir() {
                files.push(path);
            } else if !name.to_string_lossy().starts_with('.') && name != "target" {
                folders.push(path);
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_tests_has_a_program() {
        let program = |file| Tree::own().program("ganger-deque", file);
        assert_eq!(program("memory"), "memory");
        assert_eq!(program("soak"), "soak");
        assert_eq!(program("stress"), "stress");
        assert_eq!(program("behaviour"), IT);
        assert_eq!(program("loom_drop"), IT);
    }

    #[test]
    fn both_ways_find_the_sources() {
        for files in [files().unwrap(), walk(root()).unwrap()] {
            assert!(files.contains(&Path::new("xtask").join("src").join("root.rs")));
            assert!(!files.iter().any(|path| path.starts_with("target")));
        }
    }
}
