//! The project's folder, its target folder, its crates and its files.

use crate::Failure;
use std::collections::BTreeMap;
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

    /// Returns the folder of a package.
    pub(crate) fn package(&self, package: &str) -> PathBuf {
        let folder = package.trim_start_matches("ganger-");
        self.root.join("crates").join(folder)
    }

    /// Returns the package's test program for a file in `tests`: the file's own, or the program of
    /// many files.
    pub(crate) fn program<'a>(&self, package: &str, file: &'a str) -> &'a str {
        let own = self.package(package).join("tests").join(file);
        match own.join("main.rs").is_file() || own.with_extension("rs").is_file() {
            true => file,
            false => IT,
        }
    }
}

/// Returns the folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// Returns the manifests of the packages in `crates`, by name.
pub(crate) fn crates() -> Result<BTreeMap<String, toml::Table>, Failure> {
    let mut crates = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates"))? {
        if let Ok(manifest) = fs::read_to_string(entry?.path().join("Cargo.toml")) {
            let manifest: toml::Table = manifest.parse()?;
            let name = manifest["package"]["name"].as_str().unwrap_or_default();
            crates.insert(name.to_owned(), manifest);
        }
    }
    Ok(crates)
}

/// Returns the project's files, relative to its folder, in order and with `/` on every system:
/// files that git knows or would add; outside of git, all files that are not hidden and not built.
pub(crate) fn files() -> Result<Vec<String>, Failure> {
    let list = "ls-files -z --cached --others --exclude-standard".split(' ');
    let output = Command::new("git").args(list).current_dir(root()).output();
    let mut files: Vec<_> = match output {
        Ok(output) if output.status.success() => {
            let list = String::from_utf8(output.stdout)?;
            list.split_terminator('\0').map(str::to_owned).collect()
        }
        _ => walk(root())?,
    };
    // Git lists files whose removal is not committed yet.
    files.retain(|path| root().join(path).is_file());
    files.sort();
    files.dedup();
    Ok(files)
}

/// Returns all files below `root` that are not hidden and not built, relative to `root`.
pub(crate) fn walk(root: &Path) -> Result<Vec<String>, Failure> {
    let mut files = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !entry.file_type()?.is_dir() {
                files.push(folder.clone() + &name);
            } else if !name.starts_with('.') && name != "target" {
                folders.push(format!("{folder}{name}/"));
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
        assert_eq!([program("memory"), program("soak")], ["memory", "soak"]);
        assert_eq!([program("behaviour"), program("loom_drop")], [IT, IT]);
    }
}
