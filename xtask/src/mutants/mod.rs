//! The mutation check: each mutant of a list, alone, must make a test fail.
//!
//! A passing test suite says little unless it would fail if the code were wrong. The lists in
//! `xtask/mutants`, a list a crate, are ways to make the code wrong: the purpose of a line of the
//! protocol is known when a test fails without the line. A mutant names its place by an item and a
//! few tokens; `xtask/mutants/README.md` says how.
//!
//! 1. The workspace is copied and built with all mutants in it; a number chooses a mutant
//!    (`change.rs`). Without a number the build is the original, which must pass the tests of the
//!    list, and each other test that a mutant fails.
//! 2. Each mutant is chosen, and the tests that the list names as its killer are run. A test that
//!    exceeds its time limit has failed too.
//! 3. A mutant that changes more than bodies of functions is built alone, in another copy.
//! 4. A mutant that its killer passes is an error. A list may say in the place of a killer that a
//!    mutant is equivalent to the original, or why no test can show the difference. All tests are
//!    run on such a mutant until a test fails, which is an error as well: the loom models, each for
//!    a minute at most, all tests under `std`, and these again with full fences if the crate can
//!    have free fences. Examples in the documentation are not run: they show, they do not test.

mod change;
mod copy;
mod list;
mod place;
mod trial;

use crate::Failure;
use crate::loom::{at_a_time, chosen, cores};
use crate::root::{Tree, files, root};
use crate::rust::is_word;
use change::{Body, Changes};
use copy::Copy;
use list::Mutant;
use place::Sources;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;
use trial::{Candidate, Trial};

/// Where the lists are, called after the crates' folders.
const LISTS: &str = "xtask/mutants";

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Runs these mutants only
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,

    /// Checks that each mutant fits the sources, and runs none
    #[arg(long)]
    check: bool,

    /// Leaves out the mutants without a killer, for which all tests are run
    #[arg(long)]
    killers: bool,

    /// The crates, by package or by folder [default: all with a list]
    #[arg(value_name = "CRATE")]
    crates: Vec<String>,
}

/// A mutant with its changes of the sources, and of functions if it changes nothing else.
struct Prepared {
    mutant: Mutant,
    changes: Changes,
    bodies: Option<Vec<Body>>,
}

/// Runs the mutants of each crate, even if a mutant survives.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut crates = prepare(&chosen(&options.crates, packages()?, "mutants")?)?;
    let names = crates.iter().flat_map(|it| &it.1);
    let names: BTreeSet<_> = names.map(|it| it.mutant.name.clone()).collect();
    if let Some(name) = options.only.iter().find(|name| !names.contains(*name)) {
        return Err(format!("no mutant is called {name}; {LISTS} has them").into());
    }
    for (package, mutants) in &mut crates {
        println!("{package}: {} mutants fit the sources", mutants.len());
        mutants.retain(|Prepared { mutant, .. }| {
            let is_asked = options.only.is_empty() || options.only.contains(&mutant.name);
            is_asked && (!options.killers || mutant.killer().is_some())
        });
    }
    if options.check {
        return Ok(());
    }
    let folder = Tree::own().target.join("mutants");
    fs::create_dir_all(&folder)?;
    let lock = File::create(folder.join("lock"))?;
    let busy = |error| format!("another run is at work in {}: {error}", folder.display());
    lock.try_lock().map_err(busy)?;
    let mut complaints = Vec::new();
    for (package, mutants) in crates.iter().filter(|it| !it.1.is_empty()) {
        match run_crate(package, mutants, &folder) {
            Ok(of_crate) => complaints.extend(of_crate),
            Err(error) => complaints.push(format!("{package}: {error}")),
        }
    }
    match complaints.is_empty() {
        true => Ok(()),
        false => Err(complaints.join("\n").into()),
    }
}

/// Returns the packages with a list.
fn packages() -> Result<Vec<String>, Failure> {
    let name = |path: &str| Some(path.strip_prefix(LISTS)?.strip_suffix(".txt")?[1..].to_owned());
    let names = files()?.into_iter().filter_map(|path| name(&path));
    Ok(names.map(|name| format!("ganger-{name}")).collect())
}

/// Reads the packages' lists and applies them to the sources; the error names all mutants that do
/// not fit.
fn prepare(packages: &[String]) -> Result<Vec<(String, Vec<Prepared>)>, Failure> {
    let sources = Sources::read()?;
    let (mut crates, mut wrong) = (Vec::new(), Vec::new());
    for package in packages {
        let name = package.trim_start_matches("ganger-");
        let path = format!("{LISTS}/{name}.txt");
        let text = fs::read_to_string(root().join(&path))?;
        let mutants = list::parse(&text).map_err(|error| format!("{path}: {error}"))?;
        let words = words(name)?;
        let mut prepared = Vec::new();
        for mutant in mutants {
            let file_and_test = mutant.killer().and_then(|it| it.split(" (").next());
            let parts = Vec::from_iter(file_and_test.into_iter().flat_map(|it| it.split("::")));
            let inner = parts.split_last().map_or(&[][..], |(_, modules)| modules);
            let inner = inner.windows(2).filter(|it| it[0] != "unit");
            let inner = inner.map(|it| it.join("::"));
            let test = parts.last().map(|&test| test.to_owned());
            let missing = inner.chain(test).find(|it| !words.contains(it));
            wrong.extend(missing.map(|it| format!("{path}: {}: no {it}", mutant.name)));
            match change::changes(&mutant, name, &sources) {
                Ok((changes, bodies)) => {
                    prepared.push(Prepared {
                        mutant,
                        changes,
                        bodies,
                    });
                }
                Err(error) => wrong.push(format!("{path}: {}: {error}", mutant.name)),
            }
        }
        crates.push((package.clone(), prepared));
    }
    match wrong.is_empty() {
        true => Ok(crates),
        false => Err(wrong.join("\n").into()),
    }
}

/// Returns the words of a crate, among which is each test that a list may name, even if a macro
/// writes the test; and each module behind its parent.
fn words(name: &str) -> Result<BTreeSet<String>, Failure> {
    let mut words = BTreeSet::from(["unit".to_owned()]);
    let folder = format!("crates/{name}/");
    let is_of = |path: &&String| path.starts_with(&folder) && path.ends_with(".rs");
    for path in files()?.iter().filter(is_of) {
        let text = fs::read_to_string(root().join(path))?;
        let parent = path.trim_end_matches(".rs").trim_end_matches("/mod");
        let parent = parent.rsplit('/').next().unwrap_or_default();
        let modules = text.split("mod ").skip(1);
        let modules = modules.filter_map(|it| it.split(|c| !is_word(c)).next());
        words.extend(modules.map(|it| format!("{parent}::{it}")));
        words.extend(text.split(|c| !is_word(c)).map(str::to_owned));
        words.extend(path.split(|c| !is_word(c)).map(str::to_owned));
    }
    Ok(words)
}

/// Runs the original and then each mutant, prints a line for each, and returns the unexpected
/// results.
fn run_crate(package: &str, mutants: &[Prepared], folder: &Path) -> Result<Vec<String>, Failure> {
    let in_bodies = mutants.iter().enumerate();
    let in_bodies = in_bodies.filter_map(|(number, it)| Some((number, it.bodies.as_deref()?)));
    let (built, numbers) = build(package, in_bodies.collect(), &folder.join("switched"))?;
    let killer = |number: usize| mutants[number].mutant.killer();
    let killers: Vec<_> = (0..mutants.len()).filter_map(killer).collect();
    let trial = Trial::of_original(built, &killers)?;
    println!("{package}: the original passes");
    let results = Mutex::new((0, Vec::new()));
    let tell = |number: usize, start: Instant, killed: Result<Option<String>, Failure>| {
        let Mutant { name, reason, .. } = &mutants[number].mutant;
        let mut results = results.lock().expect("no thread panics with it");
        results.0 += 1;
        let (done, all, seconds) = (results.0, mutants.len(), start.elapsed().as_secs());
        let (result, fault) = match (killed, killer(number)) {
            (Ok(Some(by)), Some(_)) => (format!("killed by {by}"), None),
            (Ok(Some(by)), None) => (format!("killed by {by}"), Some("the reason is wrong")),
            (Ok(None), Some(_)) => ("survives".to_owned(), Some("its killer sees nothing")),
            (Ok(None), None) => (format!("survives: {reason}"), None),
            (Err(error), _) => (error.to_string(), Some("mend the list or the test")),
        };
        println!("[{done}/{all}] {name}: {result} in {seconds} s");
        let complaint = fault.map(|fault| format!("{package}: {name}: {result}: {fault}"));
        results.1.extend(complaint);
    };
    let (by_number, alone): (Vec<_>, Vec<_>) =
        (0..mutants.len()).partition(|number| numbers.contains(number));
    at_a_time(cores(), by_number, |number| {
        let start = Instant::now();
        tell(
            number,
            start,
            trial.killer(&trial.built, killer(number), Some(number)),
        );
    });
    let mut copy = Copy::new(&folder.join("alone"))?;
    for number in alone {
        let start = Instant::now();
        copy.apply(&mutants[number].changes)?;
        let killed = trial::build(&copy.tree, package, killer(number))?
            .map_err(|stderr| format!("does not build:\n{stderr}").into())
            .and_then(|built| trial.killer(&built, killer(number), None));
        tell(number, start, killed);
    }
    Ok(results.into_inner()?.1)
}

/// The tests that were built, and the numbers of the mutants in them.
type Built = (Vec<Candidate>, BTreeSet<usize>);

/// Builds the tests with all `mutants` that can share a build, in a copy in `folder`.
fn build(
    package: &str,
    mut mutants: Vec<(usize, &[Body])>,
    folder: &Path,
) -> Result<Built, Failure> {
    let mut copy = Copy::new(folder)?;
    loop {
        copy.apply(&Changes::new())?;
        let tree = copy.tree.clone();
        let read = |path: &str| Ok(fs::read_to_string(tree.root.join(path))?);
        let (changes, lines) = change::merged(&mutants, read)?;
        copy.apply(&changes)?;
        let stderr = match trial::build(&tree, package, None)? {
            Ok(built) => return Ok((built, mutants.into_iter().map(|it| it.0).collect())),
            Err(stderr) => stderr,
        };
        if mutants.is_empty() {
            return Err(format!("the original does not build: {stderr}").into());
        }
        let blamed = change::blamed(&stderr, &lines);
        if blamed.is_empty() {
            println!("{stderr}\nno mutant can be blamed, so each is built alone");
            mutants.clear();
        }
        mutants.retain(|(number, _)| !blamed.contains(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_fits_the_sources() {
        let crates = prepare(&packages().unwrap()).unwrap();
        assert!(crates.len() > 20);
    }
}
