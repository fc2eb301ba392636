//! The mutation check: each mutant of a list, alone, must make a test fail.
//!
//! A passing test suite says little unless it would fail if the code were wrong. The lists in
//! `xtask/mutants`, a list a crate, are ways to make the code wrong: the purpose of a line of the
//! protocol is known when a test fails without the line. A mutant names its place by an item and a
//! few tokens; `xtask/mutants/README.md` says how.
//!
//! 1. The workspace is copied and built with all mutants in it; a number chooses a mutant
//!    (`change.rs`). Without a number the build is the original. It must pass the tests that the
//!    list names, and each other test that a mutant fails.
//! 2. Each mutant is chosen, and the tests that the list names as its killer are run. For each
//!    survivor, all other tests are run until a test fails: the loom models, each for a minute at
//!    most, all tests under `std`, and these again with full fences if the crate can have free
//!    fences. A test that exceeds its time limit has failed too.
//!    Examples in the documentation are not run: they show, they do not test.
//! 3. A mutant that changes more than bodies of functions is built alone, in another copy.
//! 4. A mutant that survives is an error, unless the list says that it is equivalent to the
//!    original or why no test can show the difference. A killed mutant of such an entry is an error
//!    as well.

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
use trial::{Candidate, Kind, Trial, Verdict};

/// Where the lists are, called after the crates' folders.
const LISTS: &str = "xtask/mutants";

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Runs these mutants only
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,

    /// Lists the mutants, checks that each fits the sources, and runs none
    #[arg(long)]
    list: bool,

    /// Checks that each mutant fits the sources, and runs none
    #[arg(long, conflicts_with = "list")]
    check: bool,

    /// Runs the killers that the lists name, and no other tests: much faster. Mutants without a
    /// killer are left out
    #[arg(long)]
    killers: bool,

    /// The number of mutants that run at a time [default: the number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,

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
    for name in &options.only {
        if !crates
            .iter()
            .flat_map(|it| &it.1)
            .any(|it| it.mutant.name == *name)
        {
            return Err(format!("no mutant is called {name}; --list shows them").into());
        }
    }
    for (_, mutants) in &mut crates {
        mutants.retain(|Prepared { mutant, .. }| {
            let is_asked = options.only.is_empty() || options.only.contains(&mutant.name);
            is_asked && (!options.killers || mutant.killer().is_some())
        });
    }
    crates.retain(|(_, mutants)| !mutants.is_empty());
    let folder = Tree::own().target.join("mutants");
    fs::create_dir_all(&folder)?;
    let lock = File::create(folder.join("lock"))?;
    if !options.check && !options.list {
        let busy = |error| format!("another run is at work in {}: {error}", folder.display());
        lock.try_lock().map_err(busy)?;
    }
    let mut complaints = Vec::new();
    for (package, mutants) in &crates {
        println!("{package}: {} mutants fit the sources", mutants.len());
        if options.list {
            for Mutant { name, why, .. } in mutants.iter().map(|it| &it.mutant) {
                println!("{name:<48} {why}");
            }
        } else if !options.check {
            complaints.extend(run_crate(package, mutants, options, &folder)?);
        }
    }
    match complaints.is_empty() {
        true => Ok(()),
        false => Err(complaints.join("\n").into()),
    }
}

/// Returns the packages with a list.
fn packages() -> Result<Vec<String>, Failure> {
    let files = files()?;
    let lists = files
        .iter()
        .filter_map(|path| path.strip_prefix(LISTS)?.strip_suffix(".txt"));
    Ok(lists.map(|name| format!("ganger-{}", &name[1..])).collect())
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
        let files = words(name)?;
        let mut prepared = Vec::new();
        for mutant in mutants {
            let killer = mutant.killer().filter(|killer| !is_there(killer, &files));
            wrong.extend(killer.map(|it| format!("{path}: {}: no test {it}", mutant.name)));
            match change::changes(&mutant, name, &sources) {
                Ok((changes, bodies)) => prepared.push(Prepared {
                    mutant,
                    changes,
                    bodies,
                }),
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

/// Returns the words in the path, and in the text, of each file of a crate.
fn words(name: &str) -> Result<Vec<[BTreeSet<String>; 2]>, Failure> {
    let mut files = files()?;
    files.retain(|path| path.starts_with(&format!("crates/{name}/")) && path.ends_with(".rs"));
    let words = |text: &str| text.split(|c| !is_word(c)).map(str::to_owned).collect();
    let of = |path: &String| Ok([words(path), words(&fs::read_to_string(root().join(path))?)]);
    files.iter().map(of).collect()
}

/// Whether a file of the killer's module has the killer's name. Only words are looked at: a macro
/// may write the test.
fn is_there(killer: &str, files: &[[BTreeSet<String>; 2]]) -> bool {
    let killer = killer.split(" (").next().unwrap_or(killer);
    let (file, test) = killer.split_once("::").unwrap_or((killer, ""));
    let (modules, name) = test.rsplit_once("::").unwrap_or(("", test));
    let modules = modules.split("::").chain([file]);
    let modules: Vec<_> = modules
        .filter(|it| !["", "tests", "unit"].contains(it))
        .collect();
    files.iter().any(|[path, text]| {
        let is_of_module = modules.is_empty() || modules.iter().any(|it| path.contains(*it));
        is_of_module && (name.is_empty() || text.contains(name))
    })
}

/// Runs the original and then each mutant, prints a line for each, and returns the unexpected
/// results.
fn run_crate(
    package: &str,
    mutants: &[Prepared],
    options: &Options,
    folder: &Path,
) -> Result<Vec<String>, Failure> {
    let jobs = options.jobs.unwrap_or_else(cores).clamp(1, mutants.len());
    let in_bodies = mutants.iter().enumerate();
    let in_bodies = in_bodies.filter_map(|(number, it)| Some((number, it.bodies.as_deref()?)));
    let kinds = Kind::all(package)?;
    let (built, numbers) = build(
        package,
        &kinds,
        in_bodies.collect(),
        &folder.join("switched"),
    )?;
    let killer = |number: usize| mutants[number].mutant.killer();
    let killers: Vec<_> = (0..mutants.len()).filter_map(killer).collect();
    let trial = Trial::of_original(package, kinds, built, &killers, jobs)?;
    let (by_number, alone): (Vec<_>, Vec<_>) =
        (0..mutants.len()).partition(|number| numbers.contains(number));
    let results = Mutex::new((0, Vec::new()));
    let tell = |number: usize, start: Instant, verdict: Result<Verdict, Failure>| {
        let mutant = &mutants[number].mutant;
        let (name, reason) = (&mutant.name, &mutant.reason);
        let mut results = results.lock().expect("no thread panics with it");
        results.0 += 1;
        let (done, all, seconds) = (results.0, mutants.len(), start.elapsed().as_secs());
        match &verdict {
            Ok(verdict) => println!("[{done}/{all}] {name}: {verdict} in {seconds} s {reason}"),
            Err(error) => println!("[{done}/{all}] {name}: {error}"),
        }
        results
            .1
            .extend(complaint(mutant, verdict).map(|it| format!("{package}: {it}")));
    };
    // Mutants that survive their killer wait: all other tests take much longer than most killers.
    let left = Mutex::new(Vec::new());
    at_a_time(jobs, by_number, |number| {
        let start = Instant::now();
        match trial.of_number(number, killer(number), true).transpose() {
            Some(verdict) => tell(number, start, verdict),
            None if options.killers => tell(number, start, Ok(Verdict::Survived)),
            None => left.lock().expect("no thread panics with it").push(number),
        }
    });
    at_a_time(jobs, left.into_inner()?, |number| {
        let start = Instant::now();
        let killed = trial.of_number(number, killer(number), false);
        tell(
            number,
            start,
            killed.map(|it| it.unwrap_or(Verdict::Survived)),
        );
    });
    let mut copy = None;
    for number in alone {
        let start = Instant::now();
        let copy = match &mut copy {
            Some(copy) => copy,
            none => none.insert(Copy::new(&folder.join("alone"))?),
        };
        copy.apply(&mutants[number].changes)?;
        let verdict = trial.of_mutant(&copy.tree, killer(number), options.killers);
        tell(number, start, verdict);
    }
    Ok(results.into_inner()?.1)
}

/// The tests that were built, and the numbers of the mutants in them.
type Built = (Vec<Candidate>, BTreeSet<usize>);

/// Builds the tests with all `mutants` that can share a build, in a copy in `folder`.
fn build(
    package: &str,
    kinds: &[Kind],
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
        let builds = kinds.iter().map(|kind| kind.build(&tree, package, None));
        let stderr = match builds.collect::<Result<Result<Vec<_>, _>, _>>()? {
            Ok(built) => {
                let numbers = mutants.iter().map(|(number, _)| *number).collect();
                return Ok((built.into_iter().flatten().collect(), numbers));
            }
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

/// Returns the fault, and whether the tests or the list have it.
fn complaint(mutant: &Mutant, verdict: Result<Verdict, Failure>) -> Option<String> {
    let name = &mutant.name;
    match (verdict, mutant.killer().is_some()) {
        (Ok(Verdict::Killed(_)), true) | (Ok(Verdict::Survived), false) => None,
        (Ok(Verdict::Survived), true) => Some(format!("{name} survives: a test is missing")),
        (Ok(Verdict::DoesNotBuild), _) => Some(format!("{name} does not build: mend the list")),
        (Ok(verdict), false) => Some(format!("{name} is {verdict}: the list's reason is wrong")),
        (Err(error), _) => Some(format!("{name}: {error}")),
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

    #[test]
    fn a_killer_is_in_a_file_of_its_module() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        let files = [("it load stress", "two"), ("queue", "three")];
        let files = files.map(|(path, text)| [words(path), words(text)]);
        for killer in [
            "stress::two",
            "load::stress::two",
            "unit::queue::tests::three",
            "stress",
        ] {
            assert!(is_there(killer, &files), "{killer}");
        }
        for killer in ["stress::tw", "stress::three", "strain"] {
            assert!(!is_there(killer, &files), "{killer}");
        }
    }

    #[test]
    fn a_verdict_is_held_against_what_the_list_says() {
        let lists = [
            "k\n  m @ f: a ~> b",
            "(equivalent)\n  m @ f: a ~> b\n      = e",
        ];
        for (list, expected) in lists
            .into_iter()
            .zip([[true, false, false], [false, true, false]])
        {
            let mutant = &list::parse(list).unwrap()[0];
            let killed = Verdict::Killed("stress::two".to_owned());
            let verdicts = [killed, Verdict::Survived, Verdict::DoesNotBuild];
            let fine = verdicts.map(|verdict| complaint(mutant, Ok(verdict)).is_none());
            assert_eq!(fine, expected, "{list}");
        }
    }
}
