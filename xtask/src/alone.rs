//! The deque, the mailbox, the timing wheel, the ring and the memory of nodes are crates of their
//! own: each builds, and passes its tests, alone, and needs little: few crates, and no procedural
//! macro.

use crate::Failure;
use crate::cargo::Cargo;
use crate::totals::Totals;

/// The crates, each with its permitted dependencies within the project.
const STANDALONE: [(&str, &[&str]); 5] = [
    ("ganger-deque", &["ganger-sync"]),
    ("ganger-nodes", &["ganger-sync"]),
    ("ganger-mpsc", &["ganger-nodes", "ganger-sync"]),
    ("ganger-ring", &["ganger-sync"]),
    ("ganger-wheel", &[]),
];
const MAX_DIRECT: usize = 3;

/// Checks the dependencies of these crates.
pub(crate) fn needs_little() -> Result<(), Failure> {
    for (package, allowed) in STANDALONE {
        let tree = |depth: &str| {
            let tree = Cargo::new(["tree", "-p", package, "-e", "normal,build"]);
            tree.args(["--prefix", "none", "--depth", depth]).stdout()
        };
        check(package, allowed, &tree("1")?, &tree("1000")?)?;
    }
    Ok(())
}

/// Builds and tests each alone.
pub(crate) fn run(totals: &mut Totals) -> Result<(), Failure> {
    for (package, _) in STANDALONE {
        Cargo::new(["test", "-p", package]).test(totals)?;
    }
    // On machines without the need for fences in a pop, this tests the path with fences.
    let full_fences = Cargo::new(["test", "-p", "ganger-deque", "--tests"]);
    full_fences.env("GANGER_MEMBARRIER", "off").test(totals)
}

/// Checks the output of `cargo tree`: a package a line, `package` itself first.
fn check(package: &str, allowed: &[&str], direct: &str, all: &str) -> Result<(), Failure> {
    let direct: Vec<&str> = names(direct).collect();
    if direct.len() > MAX_DIRECT {
        let list = direct.join(", ");
        return Err(format!("{package} depends on more than {MAX_DIRECT} crates: {list}").into());
    }
    if let Some(line) = all.lines().find(|line| line.contains("(proc-macro)")) {
        return Err(format!("{package} depends on a procedural macro: {line}").into());
    }
    match names(all).find(|name| name.starts_with("ganger") && !allowed.contains(name)) {
        Some(name) => Err(format!("{package} depends on {name}").into()),
        None => Ok(()),
    }
}

/// The names, but for the first.
fn names(tree: &str) -> impl Iterator<Item = &str> {
    tree.lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "ganger-deque v0.1.0 (/somewhere/crates/deque)\n";

    fn tree(names: &[&str]) -> String {
        names.iter().fold(ROOT.to_owned(), |tree, name| {
            format!("{tree}{name} v1.0.0\n")
        })
    }

    #[test]
    fn few_dependencies_of_others_are_fine() {
        let direct = tree(&["crossbeam-epoch", "ganger-sync", "fastrand"]);
        let all = tree(&[
            "crossbeam-epoch",
            "crossbeam-utils",
            "ganger-sync",
            "fastrand",
        ]);
        check("ganger-deque", &["ganger-sync"], &direct, &all).unwrap();
    }

    #[test]
    fn a_fourth_dependency_is_one_too_many() {
        let direct = tree(&["a", "b", "c", "d"]);
        let error = check("ganger-deque", &[], &direct, &direct).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ganger-deque depends on more than 3 crates: a, b, c, d"
        );
    }

    #[test]
    fn a_procedural_macro_is_found_at_any_depth() {
        let direct = tree(&["thiserror"]);
        let all = format!("{direct}thiserror-impl v2.0.0 (proc-macro)\n");
        let error = check("ganger-deque", &[], &direct, &all).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ganger-deque depends on a procedural macro: thiserror-impl v2.0.0 (proc-macro)"
        );
    }

    #[test]
    fn another_crate_of_the_project_is_found_at_any_depth() {
        let all = tree(&["a", "ganger-sync", "ganger-mpsc"]);
        let error = check("ganger-deque", &["ganger-sync"], &tree(&["a"]), &all).unwrap_err();
        assert_eq!(error.to_string(), "ganger-deque depends on ganger-mpsc");
    }
}
