//! The quick gate: formatting, tidy, clippy and tests of the crates that differ from the merge base
//! with the main branch, committed or not.

use crate::Failure;
use crate::cargo::Cargo;
use crate::clippy::DENY;
use crate::root::{IT, root};
use crate::step::Step;
use crate::totals::Totals;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

pub(super) const STEPS: [Step; 4] = [Step::Fmt, Step::Tidy, Step::Clippy, Step::Test];

/// What the quick gate does not check, for people.
pub(super) const LEFT_OUT: &str = "left out: other crates, test programs beside `tests/it`, \
                                   examples in the documentation, benches, features, doc, loom; \
                                   `cargo xtask ci` has them";

/// Where the main branch may be, the likeliest place first.
const MAIN: [&str; 2] = ["origin/main", "main"];

/// The changed packages, with their folders.
pub(super) struct Quick(BTreeMap<String, PathBuf>);

impl Quick {
    /// Asks git.
    pub(super) fn find() -> Result<Self, Failure> {
        let mut bases = MAIN.iter();
        let base = bases.find_map(|main| git(&["merge-base", "HEAD", main]).ok());
        let base = base.unwrap_or_else(|| "HEAD".to_owned());
        let changed = git(&["diff", "--name-only", base.trim()])?;
        let added = git(&["ls-files", "--others", "--exclude-standard"])?;
        let files = changed.lines().chain(added.lines());
        Ok(Self(files.filter_map(package).collect()))
    }

    /// Runs a step. Returns the reason if there is nothing to check.
    pub(super) fn run(&self, step: Step, totals: &mut Totals) -> Result<Option<String>, Failure> {
        match step {
            Step::Clippy | Step::Test if self.0.is_empty() => {
                return Ok(Some("no crate has changed".to_owned()));
            }
            Step::Clippy => {
                let packages = self.0.keys().flat_map(|package| ["-p", package]);
                let clippy = Cargo::new(["clippy", "--all-targets", "--all-features"]);
                clippy.args(packages).args(DENY).run()?;
            }
            Step::Test => {
                for (package, folder) in &self.0 {
                    let folder = root().join(folder);
                    let has_library = folder.join("src/lib.rs").is_file();
                    let kind = if has_library { "--lib" } else { "--bins" };
                    let it = folder.join("tests").join(IT).is_dir();
                    let test = Cargo::new(["test", "--all-features", "-p", package, kind]);
                    test.args(it.then_some(["--test", IT]).into_iter().flatten())
                        .test(totals)?;
                }
            }
            step => return step.run(totals),
        }
        Ok(None)
    }
}

/// Returns the package of a file, and its folder; none for the benches, whose peers take minutes to
/// build.
fn package(file: &str) -> Option<(String, PathBuf)> {
    let mut parts = file.split('/');
    let (package, folder) = match (parts.next()?, parts.next()?) {
        ("crates", "ganger") => ("ganger".to_owned(), "crates/ganger".to_owned()),
        ("crates", name) => (format!("ganger-{name}"), format!("crates/{name}")),
        ("examples", _) => ("ganger-examples".to_owned(), "examples".to_owned()),
        ("xtask", _) => ("xtask".to_owned(), "xtask".to_owned()),
        _ => return None,
    };
    let folder = PathBuf::from(folder);
    root().join(&folder).is_dir().then_some((package, folder))
}

fn git(args: &[&str]) -> Result<String, Failure> {
    let output = Command::new("git")
        .args(args)
        .current_dir(root())
        .output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git {}: {}", args.join(" "), stderr.trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_belongs_to_the_package_of_its_folder() {
        for entry in fs::read_dir(root().join("crates")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let (package, folder) = package(&format!("crates/{name}/src/lib.rs")).unwrap();
            let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
            assert!(
                manifest.contains(&format!("name = \"{package}\"")),
                "{package}"
            );
        }
        for file in [
            "Cargo.lock",
            "benches/src/lib.rs",
            "crates/gone/src/lib.rs",
            "docs/A.md",
        ] {
            assert_eq!(package(file), None);
        }
    }
}
