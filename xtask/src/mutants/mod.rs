//! The mutation check: each mutant of a list, alone, must make a test fail.
//!
//! A passing test suite says little unless it would fail if the code were wrong. The lists in
//! `xtask/mutants`, a list a crate, are ways to make the code wrong: the purpose of a line of the
//! protocol is known when a test fails without the line. A mutant names its place by an item and a
//! few tokens; `xtask/mutants/README.md` says how.
//!
//! 1. The workspace is copied and built with all mutants in it; a number chooses a mutant
//!    (`switched.rs`). Without a number the build is the original. It must pass the tests that the
//!    list names, and each other test that a mutant fails.
//! 2. Each mutant is chosen, and the tests that the list names as its killer are run. For each
//!    survivor, all other tests are run until a test fails: the loom models, each for a minute at
//!    most, all tests under `std`, and these again with full fences if the crate can have free
//!    fences. A test that exceeds its time limit has failed too.
//!    Examples in the documentation are not run: they show, they do not test.
//! 3. A mutant that changes more than bodies of functions is built alone, in a copy for each job.
//! 4. A mutant that survives is an error, unless the list says that it is equivalent to the
//!    original or why no test can show the difference. A killed mutant of such an entry is an error
//!    as well.

mod copy;
mod kind;
mod list;
mod place;
mod switched;
mod trial;
mod verdict;
mod written;

use crate::Failure;
use crate::loom::{at_a_time, chosen, cores};
use crate::root::{Tree, root, walk};
use copy::Copy;
use kind::{Killer, Kind};
use list::{Body, Changes, Expected, Mutant};
use place::Sources;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use switched::Switched;
use trial::Trial;
use verdict::{Row, Verdict, aligned, summary, table};

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
    let mut crates = prepare_all(&chosen(&options.crates, packages()?, "mutants")?)?;
    select(&mut crates, &options.only)?;
    if options.killers {
        with_killers(&mut crates);
    }
    if options.check {
        for (package, mutants) in &crates {
            println!("{package}: {} mutants fit the sources", mutants.len());
        }
        return Ok(());
    }
    if options.list {
        for (package, mutants) in &crates {
            println!("{package}: {} mutants\n{}", mutants.len(), listed(mutants));
        }
        return Ok(());
    }
    let folder = Tree::own().target.join("mutants");
    fs::create_dir_all(&folder)?;
    let lock = File::create(folder.join("lock"))?;
    lock.try_lock()
        .map_err(|error| format!("another run is at work in {}: {error}", folder.display()))?;
    let mut complaints = Vec::new();
    for (package, mutants) in &crates {
        let jobs = options.jobs.unwrap_or_else(cores).clamp(1, mutants.len());
        let rows = run_crate(package, mutants, jobs, options.killers, &folder)?;
        println!("\n{}", table(&rows));
        match summary(&rows) {
            Ok(summary) => println!("{package}: {summary}"),
            Err(complaint) => complaints.push(format!("{package}: {complaint}")),
        }
    }
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(complaints.join("\n").into())
    }
}

/// Returns the packages with a list.
fn packages() -> Result<Vec<String>, Failure> {
    let mut packages = Vec::new();
    for entry in fs::read_dir(root().join(LISTS))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("txt") => packages.push(format!("ganger-{name}")),
            Some("md") => {}
            _ => return Err(format!("{} is no list: {LISTS}/README.md", path.display()).into()),
        }
    }
    packages.sort();
    Ok(packages)
}

/// Reads the packages' lists and applies them to the sources; the error names all mutants that do
/// not fit.
fn prepare_all(packages: &[String]) -> Result<Vec<(String, Vec<Prepared>)>, Failure> {
    let mut sources = Sources::new(root());
    let (mut crates, mut wrong) = (Vec::new(), Vec::new());
    for package in packages {
        match prepare(package, &mut sources) {
            Ok(mutants) => crates.push((package.clone(), mutants)),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    if wrong.is_empty() {
        Ok(crates)
    } else {
        Err(wrong.join("\n").into())
    }
}

fn prepare(package: &str, sources: &mut Sources) -> Result<Vec<Prepared>, Failure> {
    let name = package.trim_start_matches("ganger-");
    let path = format!("{LISTS}/{name}.txt");
    let text = fs::read_to_string(root().join(&path))?;
    let mutants = written::parse(&text).map_err(|error| format!("{path}: {error}"))?;
    let mut prepared = Vec::new();
    let mut wrong = Vec::new();
    let files = tests_of(name)?;
    for mutant in mutants {
        let killer = mutant.killer.as_deref();
        if let Some(text) = killer.filter(|text| !Killer::new(text).is_in(&files)) {
            wrong.push(format!("{}: there is no test {text}", mutant.name));
        }
        match mutant.changes(name, sources) {
            Ok((changes, bodies)) => prepared.push(Prepared {
                mutant,
                changes,
                bodies,
            }),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    if wrong.is_empty() {
        Ok(prepared)
    } else {
        let wrong = wrong.join("\n  ");
        Err(format!("{path} does not fit the sources:\n  {wrong}").into())
    }
}

/// Returns the modules and the text of each file of a crate that may have tests.
fn tests_of(name: &str) -> Result<Vec<(Vec<String>, String)>, Failure> {
    let folder = root().join("crates").join(name);
    let mut files = Vec::new();
    for part in ["src", "tests"].map(|part| folder.join(part)) {
        for path in if part.is_dir() {
            walk(&part)?
        } else {
            Vec::new()
        } {
            if path.extension().is_some_and(|extension| extension == "rs") {
                let modules = path.with_extension("");
                let modules = modules
                    .iter()
                    .map(|part| part.to_string_lossy().into_owned());
                files.push((modules.collect(), fs::read_to_string(part.join(&path))?));
            }
        }
    }
    Ok(files)
}

/// Keeps the mutants named in `only`, and their crates.
fn select(crates: &mut Vec<(String, Vec<Prepared>)>, only: &[String]) -> Result<(), Failure> {
    if only.is_empty() {
        return Ok(());
    }
    let all = || crates.iter().flat_map(|(_, mutants)| mutants);
    if let Some(name) = only
        .iter()
        .find(|&name| all().all(|prepared| prepared.mutant.name != *name))
    {
        return Err(format!("no mutant is called {name}; --list shows them").into());
    }
    for (_, mutants) in crates.iter_mut() {
        mutants.retain(|prepared| only.contains(&prepared.mutant.name));
    }
    crates.retain(|(_, mutants)| !mutants.is_empty());
    Ok(())
}

/// Keeps the mutants for which the list names a killer.
fn with_killers(crates: &mut Vec<(String, Vec<Prepared>)>) {
    for (package, mutants) in crates.iter_mut() {
        let before = mutants.len();
        mutants.retain(|prepared| prepared.mutant.killer.is_some());
        let without = before - mutants.len();
        if without > 0 {
            println!("{package}: {without} mutants have no killer, and are left out");
        }
    }
    crates.retain(|(_, mutants)| !mutants.is_empty());
}

fn listed(mutants: &[Prepared]) -> String {
    let line = |Prepared { mutant, .. }: &Prepared| {
        let expected = match (&mutant.expected, &mutant.killer) {
            (Expected::Killed, Some(killer)) => killer.clone(),
            (Expected::Killed, None) => String::new(),
            (Expected::Equivalent(_), _) => "(equivalent)".to_owned(),
            (Expected::Unshown(_), _) => "(no test can show it)".to_owned(),
        };
        [mutant.name.clone(), mutant.why.clone(), expected]
    };
    aligned(&Vec::from_iter(mutants.iter().map(line)))
}

/// Runs the original and then each mutant, and returns the verdicts in the list's order.
fn run_crate<'a>(
    package: &str,
    mutants: &'a [Prepared],
    jobs: usize,
    killers_only: bool,
    folder: &Path,
) -> Result<Vec<Row<'a>>, Failure> {
    let start = Instant::now();
    println!("{package}: the original");
    let killer = |prepared: &Prepared| prepared.mutant.killer.as_deref().map(Killer::new);
    let numbered = mutants.iter().enumerate();
    let in_bodies: Vec<_> = numbered
        .filter_map(|(number, prepared)| Some((number, prepared.bodies.as_deref()?)))
        .collect();
    let kinds = Kind::all(&Tree::own(), package)?;
    let switched = Switched::build(package, &kinds, &in_bodies, &folder.join("switched"))?;
    let chosen = switched.numbers;
    let killers: Vec<_> = mutants.iter().filter_map(killer).collect();
    let trial = Trial::of_original(package, kinds, switched.built, &killers, jobs)?;
    println!("{} tests pass in {}", trial.len(), seconds(start.elapsed()));
    let (by_number, alone): (Vec<_>, Vec<_>) =
        (0..mutants.len()).partition(|number| chosen.contains(number));
    let mut copies = Vec::new();
    for job in 1..=jobs.min(alone.len()) {
        copies.push(Mutex::new(Copy::new(&folder.join(format!("job-{job}")))?));
    }
    let rows = Mutex::new(Vec::new());
    let tell = |number: usize, start: Instant, verdict: Result<Verdict, Failure>| {
        let time = start.elapsed();
        let mut rows = rows.lock().expect("nobody panics with it");
        let mutant = &mutants[number].mutant;
        let row = verdict.map(|verdict| {
            let (done, all, name) = (rows.len() + 1, mutants.len(), &mutant.name);
            println!("[{done}/{all}] {name}: {verdict} in {}", seconds(time));
            Row {
                mutant,
                verdict,
                time,
            }
        });
        rows.push((number, row.map_err(|error| error.to_string())));
    };
    // Mutants that survive their killer wait: all other tests take much longer than most killers.
    let left = Mutex::new(Vec::new());
    at_a_time(jobs, by_number, |_, number| {
        let start = Instant::now();
        let killed = trial.of_number(number, killer(&mutants[number]).as_ref(), true);
        match killed.transpose() {
            Some(verdict) => tell(number, start, verdict),
            None if killers_only => tell(number, start, Ok(Verdict::Survived)),
            None => left.lock().expect("nobody panics with it").push(number),
        }
    });
    let left = left.into_inner().expect("nobody panics with it");
    at_a_time(jobs, left, |_, number| {
        let start = Instant::now();
        let killer = killer(&mutants[number]);
        let killed = trial.of_number(number, killer.as_ref(), false);
        tell(
            number,
            start,
            killed.map(|it| it.unwrap_or(Verdict::Survived)),
        );
    });
    at_a_time(copies.len(), alone, |job, number| {
        let start = Instant::now();
        let prepared = &mutants[number];
        let mut copy = copies[job].lock().expect("nobody panics with it");
        let verdict = copy.apply(&prepared.changes).and_then(|()| {
            let killer = killer(prepared);
            trial.of_mutant(&copy.tree, killer.as_ref(), killers_only)
        });
        tell(number, start, verdict);
    });
    let mut rows = rows.into_inner().expect("nobody panics with it");
    rows.sort_by_key(|(number, _)| *number);
    Ok(rows
        .into_iter()
        .map(|(_, row)| row)
        .collect::<Result<_, _>>()?)
}

fn seconds(time: Duration) -> String {
    format!("{:.0} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_fits_the_sources() {
        let crates = prepare_all(&packages().unwrap()).unwrap();
        assert!(crates.iter().all(|(_, mutants)| !mutants.is_empty()));
    }
}
