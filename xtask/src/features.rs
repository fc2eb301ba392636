//! The facade with no feature, with each, and with each pair; the crates below without theirs; and
//! the standalone crates: each builds, and passes its tests, alone, and needs little.

use crate::Failure;
use crate::cargo::Cargo;
use crate::clippy::DENY;
use crate::root::crates;
use crate::totals::Totals;

const FACADE: &str = "ganger";

/// The crates below the facade with default features.
const LOWER: &str = "ganger-sync ganger-deque ganger-mpsc ganger-sched ganger-task";

/// The standalone crates, each with its permitted dependencies within the project.
const STANDALONE: [(&str, &[&str]); 5] = [
    ("ganger-deque", &["ganger-sync"]),
    ("ganger-nodes", &["ganger-sync"]),
    ("ganger-mpsc", &["ganger-nodes", "ganger-sync"]),
    ("ganger-ring", &["ganger-sync"]),
    ("ganger-wheel", &[]),
];

/// Checks only the libraries, because [`pairs`] checks the tests.
pub(crate) fn run() -> Result<(), Failure> {
    for (package, allowed) in STANDALONE {
        let tree = format!("tree -e normal,build --prefix none -p {package}");
        needs_little(package, allowed, &Cargo::new(&tree).stdout()?)?;
    }
    for package in LOWER.split(' ') {
        clippy(package, "", "--lib")?;
    }
    let sets = facade()?;
    let mut small = sets.iter().filter(|set| !set.contains(','));
    small.try_for_each(|set| clippy(FACADE, set, "--lib"))
}

/// Checks all targets that a set of features lets build.
pub(crate) fn pairs() -> Result<(), Failure> {
    let mut sets = facade()?.into_iter();
    sets.try_for_each(|set| clippy(FACADE, &set, "--all-targets"))
}

/// Builds and tests each standalone crate.
pub(crate) fn alone(totals: &mut Totals) -> Result<(), Failure> {
    for (package, _) in STANDALONE {
        Cargo::new(&format!("test -p {package}")).test(totals)?;
    }
    // On machines without the need for fences in a pop, this tests the path with fences.
    let full_fences = Cargo::new("test -p ganger-deque --tests");
    full_fences.env("GANGER_MEMBARRIER", "off").test(totals)
}

/// Checks the output of `cargo tree`: a package a line, `package` itself first.
fn needs_little(package: &str, allowed: &[&str], tree: &str) -> Result<(), Failure> {
    for line in tree.lines().skip(1) {
        let name = line.split(' ').next().unwrap_or_default();
        let is_foreign = name.starts_with("ganger") && !allowed.contains(&name);
        if is_foreign || line.contains("(proc-macro)") {
            return Err(format!("{package} must not depend on {line}").into());
        }
    }
    Ok(())
}

/// Runs clippy: `cargo check` with warnings that can be denied without building all again.
fn clippy(package: &str, features: &str, targets: &str) -> Result<(), Failure> {
    let clippy = format!("clippy -p {package} --no-default-features {targets} --features");
    Cargo::new(&clippy).arg(features).args(DENY).run()
}

/// Returns the sets of at most two of the facade's features.
fn facade() -> Result<Vec<String>, Failure> {
    let facade = crates()?.remove(FACADE).ok_or("there is no facade")?;
    let features = facade["features"].as_table().ok_or("no features")?.keys();
    let features: Vec<_> = features.filter(|name| *name != "default").collect();
    let mut sets = vec![String::new()];
    for (index, &one) in features.iter().enumerate() {
        sets.push(one.clone());
        let others = features[..index].iter();
        sets.extend(others.map(|other| format!("{other},{one}")));
    }
    Ok(sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_none_each_and_each_pair() {
        let sets = facade().unwrap();
        let pairs = sets.iter().filter(|set| set.contains(',')).count();
        let features = sets.len() - pairs - 1;
        assert!(features > 3 && pairs == features * (features - 1) / 2);
    }

    #[test]
    fn a_crate_that_stands_alone_needs_little() {
        let check = |rest: &str| needs_little("a", &["ganger-sync"], &format!("a v1\n{rest}"));
        assert!(check("crossbeam-epoch v1\nganger-sync v1\n").is_ok());
        assert!(check("ganger-mpsc v1\n").is_err());
        assert!(check("thiserror-impl v2.0.0 (proc-macro)\n").is_err());
    }
}
