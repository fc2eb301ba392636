//! The ways in which a crate's tests are run, and the names of tests in a list.

use crate::Failure;
use crate::cargo::{Cargo, Test};
use crate::loom;
use crate::root::Tree;
use std::fmt;
use std::fs;

const STD: &str = " (std)";
const FENCED: &str = " (full fences)";

/// A way to run tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Loom models, in every interleaving within their bounds.
    Model,
    /// With real threads.
    Std,
    /// The same, with full fences even where light fences could be free: other code runs.
    Fenced,
}

/// The name of a mutant's killer in a list: a file in `tests` or `tests/it`, `unit`, or a test as
/// `file::test`. A name with `loom_` means a model unless `(std)` follows; any other name means the
/// test under `std`, or with full fences if `(full fences)` follows. The table shows the same
/// names, with the folders in `tests/it`, which a list leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Killer {
    pub(crate) kind: Kind,
    file: String,
    test: Option<String>,
}

impl Kind {
    /// Returns the ways in which a package's tests are run, the models first, if any.
    pub(crate) fn all(tree: &Tree, package: &str) -> Result<Vec<Self>, Failure> {
        let manifest = fs::read_to_string(tree.package(package).join("Cargo.toml"))?;
        let mut kinds = Vec::new();
        if loom::packages()?.iter().any(|it| it == package) {
            kinds.push(Self::Model);
        }
        kinds.push(Self::Std);
        if manifest.contains("membarrier") {
            kinds.push(Self::Fenced);
        }
        Ok(kinds)
    }

    /// Builds a package's tests, or the tests in the killer's file. The inner `Err` has the
    /// compiler's messages.
    pub(crate) fn build(
        self,
        tree: &Tree,
        package: &str,
        killer: Option<&Killer>,
    ) -> Result<Result<Vec<Test>, String>, Failure> {
        let file = killer.map(|killer| killer.file.as_str());
        let call = match self {
            Self::Model => loom::build(tree, package, file)?,
            Self::Std | Self::Fenced => {
                let test = Cargo::new(["test", "--no-run", "--all-features", "-p", package]);
                let test = test.at(tree);
                match file {
                    None => test,
                    Some("unit") => test.args(["--lib"]),
                    Some(file) => test.args(["--test", tree.program(package, file)]),
                }
            }
        };
        // No debugger will be attached.
        let call = call
            .env("CARGO_PROFILE_DEV_DEBUG", "none")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "none");
        let stderr = match call.quietly() {
            Ok(stderr) => stderr,
            Err(stderr) => return Ok(Err(stderr)),
        };
        let tests = Test::list(&stderr, tree, package)?.into_iter();
        let tests = tests.filter(|test| self != Self::Model || loom::is_model(test));
        Ok(Ok(tests.collect()))
    }

    /// Returns the additions to the environment of the tests.
    pub(crate) fn env(self) -> Vec<(&'static str, String)> {
        // A failing case of a mutant is not kept for the next mutant.
        let alike = ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1".to_owned());
        match self {
            Self::Model | Self::Std => vec![alike],
            Self::Fenced => vec![alike, ("GANGER_MEMBARRIER", "off".to_owned())],
        }
    }

    /// Returns the name of a test for people.
    pub(crate) fn called(self, test: &Test) -> String {
        let Test { file, name, .. } = test;
        let how = match self {
            Self::Std if loom::is_model(test) => STD,
            Self::Model | Self::Std => "",
            Self::Fenced => FENCED,
        };
        format!("{file}::{name}{how}")
    }
}

impl fmt::Display for Killer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match &self.test {
            Some(test) => write!(f, "::{test}"),
            None => Ok(()),
        }
    }
}

impl Killer {
    pub(crate) fn new(text: &str) -> Self {
        let (name, kind) = if let Some(name) = text.strip_suffix(FENCED) {
            (name, Kind::Fenced)
        } else if let Some(name) = text.strip_suffix(STD) {
            (name, Kind::Std)
        } else if text.contains("loom_") {
            (text, Kind::Model)
        } else {
            (text, Kind::Std)
        };
        let (file, test) = match name.split_once("::") {
            Some((file, test)) => (file, Some(test.to_owned())),
            None => (name, None),
        };
        Self {
            kind,
            file: file.to_owned(),
            test,
        }
    }

    /// Returns whether a file of the killer's module has the killer's name. Only tokens are looked
    /// at: a macro may write the test.
    pub(crate) fn is_in(&self, files: &[(Vec<String>, String)]) -> bool {
        let test = self.test.as_deref().unwrap_or_default();
        let mut modules: Vec<_> = test
            .split("::")
            .filter(|module| *module != "tests")
            .collect();
        let name = modules.pop().unwrap_or_default();
        if self.file != "unit" {
            modules.push(&self.file);
        }
        files.iter().any(|(path, text)| {
            let is_of_path = |module: &&str| path.iter().any(|it| it == module);
            let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let has_name = name.is_empty() || words.any(|word| word == name);
            (modules.is_empty() || modules.iter().any(is_of_path)) && has_name
        })
    }

    /// Returns whether the killer means this test, among the tests of its kind.
    pub(crate) fn means(&self, file: &str, name: &str) -> bool {
        let Some(test) = self.test.as_deref() else {
            return self.file == file;
        };
        if self.file == file && test == name {
            return true;
        }
        // A file in a folder of `tests/it`.
        let rest = name
            .strip_suffix(test)
            .and_then(|rest| rest.strip_suffix("::"));
        let inner = rest.and_then(|rest| rest.strip_suffix(self.file.as_str()));
        inner.is_some_and(|inner| inner.is_empty() || inner.ends_with("::"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killer_is_a_file_or_a_test_of_some_kind() {
        for (text, kind, file, test) in [
            ("stress", Kind::Std, "stress", None),
            (
                "stress::two (full fences)",
                Kind::Fenced,
                "stress",
                Some("two"),
            ),
            ("loom_drop", Kind::Model, "loom_drop", None),
            ("loom_drop::one (std)", Kind::Std, "loom_drop", Some("one")),
            ("unit::loom_a::b", Kind::Model, "unit", Some("loom_a::b")),
        ] {
            let killer = Killer::new(text);
            assert_eq!((killer.kind, killer.file.as_str()), (kind, file));
            assert_eq!(killer.test.as_deref(), test);
        }
        assert!(Killer::new("stress").means("stress", "two"));
        assert!(!Killer::new("stress").means("stres", "two"));
        let killer = Killer::new("stress::two");
        assert!(killer.means("stress", "two") && killer.means("load", "heavy::stress::two"));
        assert!(!killer.means("stress", "twofold") && !killer.means("load", "distress::two"));
    }

    #[test]
    fn a_killer_is_in_a_file_of_its_module() {
        let file = |path: &str, text: &str| {
            (
                path.split('/').map(str::to_owned).collect::<Vec<_>>(),
                text.to_owned(),
            )
        };
        let files = [
            file("it/load/stress", "fn two() {}"),
            file("queue", "fn three() {}"),
        ];
        for text in [
            "stress::two",
            "load::stress::two",
            "unit::queue::tests::three",
            "stress",
        ] {
            assert!(Killer::new(text).is_in(&files), "{text}");
        }
        for text in ["stress::tw", "stress::three", "strain"] {
            assert!(!Killer::new(text).is_in(&files), "{text}");
        }
    }
}
