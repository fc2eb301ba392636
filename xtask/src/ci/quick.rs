//! The quick gate: the checks that a change is most likely to break, in about a minute after an
//! earlier build.
//!
//! A crate has changed if a file in its folder differs from the merge base with the main branch,
//! committed or not. Clippy checks these crates and their direct dependents. Only the changed
//! crates are tested: their unit tests and `tests/it`.

use crate::Failure;
use crate::cargo::Cargo;
use crate::clippy::DENY;
use crate::root::IT;
use crate::root::root;
use crate::step::Step;
use crate::totals::Totals;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

pub(super) const STEPS: [Step; 4] = [Step::Fmt, Step::Tidy, Step::Clippy, Step::Test];

/// Where the main branch may be, the likeliest place first.
const MAIN: [&str; 2] = ["origin/main", "main"];

/// The package with all the peers, which takes minutes to build.
const BENCHES: &str = "ganger-benches";

/// The changed crates, and their dependents.
#[derive(Debug, Default)]
pub(super) struct Quick {
    changed: Vec<Package>,
    dependents: Vec<Package>,
    /// Whether a file has changed that affects every crate's build.
    everywhere: bool,
}

/// A package of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Package {
    name: String,
    /// Relative to the workspace, with `/` on every system.
    folder: String,
    /// Its dependencies in the workspace.
    uses: BTreeSet<String>,
    has_library: bool,
    has_it: bool,
}

impl Quick {
    /// Asks git and cargo.
    pub(super) fn find() -> Result<Self, Failure> {
        let metadata = Cargo::new(["metadata", "--no-deps", "--format-version", "1"]).stdout()?;
        let packages = packages(&serde_json::from_str(&metadata)?, root())?;
        Ok(Self::of(&changed_files()?, packages))
    }

    fn of(files: &[String], packages: Vec<Package>) -> Self {
        let mut owners = BTreeSet::new();
        let mut everywhere = false;
        for file in files {
            match owner(file, &packages) {
                Some(package) => _ = owners.insert(package.name.clone()),
                None => everywhere |= !file.contains('/') && !file.ends_with(".md"),
            }
        }
        let (changed, others): (Vec<_>, Vec<_>) = packages
            .into_iter()
            .partition(|package| owners.contains(&package.name));
        let depends = |package: &Package| !package.uses.is_disjoint(&owners);
        let dependents = others.into_iter().filter(depends);
        Self {
            changed,
            dependents: dependents
                .filter(|package| package.name != BENCHES)
                .collect(),
            everywhere,
        }
    }

    /// Describes the check of a step.
    pub(super) fn what(&self, step: Step) -> String {
        match step {
            Step::Clippy => format!(
                "clippy has nothing to say of {}, and {} that depend on them",
                names(&self.changed),
                names(&self.dependents)
            ),
            Step::Test => format!("the tests of {} pass", names(&self.tested())),
            _ => step.what(),
        }
    }

    pub(super) fn run(&self, step: Step, totals: &mut Totals) -> Result<Option<String>, Failure> {
        match step {
            Step::Clippy => {
                let packages = self.changed.iter().chain(&self.dependents);
                let packages: Vec<&str> = packages.flat_map(Package::option).collect();
                if packages.is_empty() {
                    return Ok(Some("no crate has changed".to_owned()));
                }
                let clippy = Cargo::new(["clippy", "--all-targets", "--all-features"]);
                clippy.args(packages).args(DENY).run()?;
                Ok(None)
            }
            Step::Test => {
                let tested = self.tested();
                if tested.is_empty() {
                    return Ok(Some("no crate has changed".to_owned()));
                }
                Cargo::new(test(&tested)).test(totals)?;
                Ok(None)
            }
            step => step.run(totals),
        }
    }

    /// Returns the packages with tests to run.
    fn tested(&self) -> Vec<Package> {
        let tested = self
            .changed
            .iter()
            .filter(|package| package.name != BENCHES);
        tested.cloned().collect()
    }

    /// Describes the gate's further checks, for people.
    pub(super) fn left_out(&self) -> String {
        let everywhere = match self.everywhere {
            true => "every crate (a file that all are built by has changed); ",
            false => "",
        };
        let benches = match self.changed.iter().any(|package| package.name == BENCHES) {
            true => "the tests of ganger-benches; ",
            false => "",
        };
        format!(
            "left out: {everywhere}{benches}the tests of other crates than {}, test programs \
             beside `tests/it`, examples in the documentation, features, doc, loom; \
             `cargo xtask ci` has them",
            names(&self.tested())
        )
    }
}

impl Package {
    fn option(&self) -> [&str; 2] {
        ["-p", &self.name]
    }
}

/// Returns cargo's arguments to test these packages.
fn test(packages: &[Package]) -> Vec<&str> {
    let mut args = vec!["test", "--all-features"];
    args.extend(packages.iter().flat_map(Package::option));
    let mut add = |options: &[&'static str], has: &dyn Fn(&Package) -> bool| {
        if packages.iter().any(has) {
            args.extend(options);
        }
    };
    add(&["--lib"], &|package| package.has_library);
    add(&["--bins"], &|package| !package.has_library);
    add(&["--test", IT], &|package| package.has_it);
    args
}

fn names(packages: &[Package]) -> String {
    if packages.is_empty() {
        return "no crates".to_owned();
    }
    let names = packages.iter().map(|package| package.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// Returns the package of a file, if any: the package in the deepest folder.
fn owner<'a>(file: &str, packages: &'a [Package]) -> Option<&'a Package> {
    let has = |package: &&Package| {
        let rest = file.strip_prefix(&package.folder);
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let owners = packages.iter().filter(has);
    owners.max_by_key(|package| package.folder.len())
}

/// Returns the workspace's packages, from the output of `cargo metadata`.
fn packages(metadata: &Value, root: &Path) -> Result<Vec<Package>, Failure> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut packages = Vec::new();
    for package in list(&metadata["packages"]) {
        let manifest = text(&package["manifest_path"]);
        let folder = Path::new(&manifest).parent().unwrap_or(root);
        let folder = folder.strip_prefix(root)?.to_string_lossy();
        let dependencies = list(&package["dependencies"]).into_iter();
        let own = dependencies.filter(|dependency| dependency["path"].is_string());
        let targets = list(&package["targets"]);
        let has = |kind: &str| targets.iter().any(|target| target["kind"][0] == kind);
        let is_it = |target: &Value| target["kind"][0] == "test" && target["name"] == IT;
        packages.push(Package {
            name: text(&package["name"]),
            folder: folder.replace('\\', "/"),
            uses: own.map(|dependency| text(&dependency["name"])).collect(),
            has_library: has("lib"),
            has_it: targets.iter().any(is_it),
        });
    }
    Ok(packages)
}

/// Returns the files that differ from the merge base with the main branch, and the files that git
/// does not know yet.
fn changed_files() -> Result<Vec<String>, Failure> {
    let base = MAIN
        .iter()
        .find_map(|main| git(&["merge-base", "HEAD", main]).ok());
    let base = base.map_or_else(|| "HEAD".to_owned(), |base| base.trim().to_owned());
    let changed = git(&["diff", "--name-only", "-z", &base])?;
    let added = git(&["ls-files", "-z", "--others", "--exclude-standard"])?;
    let files = changed
        .split_terminator('\0')
        .chain(added.split_terminator('\0'));
    Ok(files.map(str::to_owned).collect())
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
    use serde_json::json;

    fn workspace() -> Vec<Package> {
        let package = |name: &str, folder: &str, uses: &[&str], kinds: Value| {
            let uses = uses
                .iter()
                .map(|name| json!({ "name": name, "path": "/w/somewhere" }));
            let foreign = json!({ "name": "libc" });
            json!({
                "name": name,
                "manifest_path": format!("/w/{folder}/Cargo.toml"),
                "dependencies": uses.chain([foreign]).collect::<Vec<_>>(),
                "targets": kinds,
            })
        };
        let lib = json!({ "kind": ["lib"], "name": "x" });
        let it = json!({ "kind": ["test"], "name": "it" });
        let bin = json!({ "kind": ["bin"], "name": "x" });
        let metadata = json!({ "packages": [
            package("a", "crates/a", &[], json!([lib, it])),
            package("b", "crates/b", &["a"], json!([lib])),
            package("c", "crates/c", &["b"], json!([lib, it])),
            package(BENCHES, "benches", &["a"], json!([lib, bin])),
            package("count", "benches/count", &[], json!([bin])),
        ]});
        packages(&metadata, Path::new("/w")).unwrap()
    }

    fn quick(files: &[&str]) -> Quick {
        let files: Vec<String> = files.iter().map(|&file| file.to_owned()).collect();
        Quick::of(&files, workspace())
    }

    #[test]
    fn a_file_belongs_to_the_package_in_the_deepest_folder() {
        let quick = quick(&[
            "crates/a/src/lib.rs",
            "benches/count/src/main.rs",
            "docs/A.md",
        ]);
        assert_eq!(names(&quick.changed), "a, count");
        assert_eq!(names(&quick.dependents), "b");
        assert!(!quick.everywhere);
        let expected = "test --all-features -p a -p count --lib --bins --test it";
        assert_eq!(test(&quick.tested()).join(" "), expected);
    }

    #[test]
    fn what_depends_on_a_change_is_not_tested_but_said() {
        let quick = quick(&["crates/b/README.md"]);
        assert_eq!(
            test(&quick.tested()).join(" "),
            "test --all-features -p b --lib"
        );
        assert_eq!(names(&quick.dependents), "c");
        let said = quick.left_out();
        assert!(
            said.starts_with("left out: the tests of other crates than b, "),
            "{said}"
        );
    }

    #[test]
    fn the_peers_are_not_built_and_what_all_are_built_by_is_said() {
        let quick = quick(&["benches/src/lib.rs", "Cargo.lock"]);
        assert!(quick.tested().is_empty() && quick.dependents.is_empty());
        let said = quick.left_out();
        assert!(said.starts_with("left out: every crate "), "{said}");
        assert!(said.contains("the tests of ganger-benches; "), "{said}");
    }

    #[test]
    fn this_workspace_is_understood() {
        let metadata = Cargo::new([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ]);
        let metadata = serde_json::from_str(&metadata.stdout().unwrap()).unwrap();
        let packages = packages(&metadata, root()).unwrap();
        let sched = packages
            .iter()
            .find(|package| package.name == "ganger-sched")
            .unwrap();
        assert_eq!(sched.folder, "crates/sched");
        assert!(sched.has_library && sched.has_it && sched.uses.contains("ganger-mpsc"));
    }
}
