//! Instructions in place of time. They decide between two versions of the code where times are lost
//! in noise, and the gate can hold the code to them.
//!
//! The program `ganger-count` does each act twice on a single worker, with few rounds and with
//! many. The difference is the cost of the rounds, without start and end. The program is built
//! alone: together with another package its dependencies could have other features.
//!
//! On x86-64 the atomic instructions are counted as well.

mod callgrind;
mod committed;
mod cost;
mod least;
mod listing;
mod profile;
mod table;

use crate::Failure;
use crate::cargo::Cargo;
use crate::root::{Tree, root};
use callgrind::Callgrind;
use clap::Parser;
use committed::{Committed, Counts, Machine, Verdict};
use cost::{Act, Cost, Kind};
use listing::Listing;
use profile::Profile;
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const PACKAGE: &str = "ganger-count";
const COMMITTED: &str = "benches/instructions.json";

/// A program's exit code for arguments that it can't carry out.
const MISUSED: u8 = 2;

/// Counts the costs of a step, a send, a spawn, a question, a channel, a timer, a socket and other
/// acts, under callgrind: instructions, read-modify-writes, fences, allocations
///
/// The counts, except libraries' read-modify-writes, are compared with benches/instructions.json.
/// A line below an act has the committed counts where they differ. Exits with 1 if a count is above
/// the committed count by more than its tolerance, and with 2 if it can't count or has nothing to
/// compare with.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench", max_term_width = 100)]
struct Options {
    /// Counts instructions in place of measuring time
    #[arg(long, required = true)]
    instructions: bool,

    /// Writes the counts to benches/instructions.json, for this machine's architecture, compiler
    /// and C library, and the table of benches/instructions.md
    #[arg(long)]
    accept: bool,

    /// Counts these acts alone
    #[arg(long, value_name = "ACT", value_delimiter = ',')]
    only: Vec<String>,
}

/// What is counted, and for what.
#[derive(Default)]
struct Goal {
    /// To commit the counts.
    accept: bool,
    /// These acts, or all of them.
    only: Vec<String>,
}

/// The result of counting.
enum Counting {
    /// No count is too high.
    Fine,
    /// These acts' counts are too high, or not committed.
    Worse(Vec<String>),
    /// Nothing was counted, for this reason.
    Not(String),
}

/// Whether these arguments of `cargo xtask bench` ask for counts.
pub(crate) fn is_wanted(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg == "--instructions")
}

/// Counts as the arguments say.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let name = OsString::from("bench");
    let said = Options::parse_from([&name].into_iter().chain(args));
    let goal = Goal {
        accept: said.accept,
        only: said.only,
    };
    match count(&goal) {
        Ok(Counting::Fine) => ExitCode::SUCCESS,
        Ok(Counting::Worse(acts)) => {
            eprintln!("error: {}", complaint(&acts));
            ExitCode::FAILURE
        }
        Ok(Counting::Not(why)) => {
            eprintln!("error: not counted: {why}");
            ExitCode::from(MISUSED)
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(MISUSED)
        }
    }
}

/// Runs the gate's step, which shows the counts, and passes. Returns which acts take more than is
/// committed, or why nothing can be counted or compared.
///
/// The same code built in two folders differs by up to 7 % in an act, since rustc orders and
/// inlines functions differently. So a count above the committed one is no proof of a fault.
pub(crate) fn gate() -> Result<Option<String>, Failure> {
    Ok(match count(&Goal::default())? {
        Counting::Fine => None,
        Counting::Worse(acts) => Some(complaint(&acts)),
        Counting::Not(why) => Some(format!("not counted: {why}")),
    })
}

fn complaint(acts: &[String]) -> String {
    let acts = acts.join(", ");
    format!(
        "{acts} take more than {COMMITTED} allows, or not in it; \
         `cargo xtask bench --instructions --accept` commits those that are meant"
    )
}

/// Counts every act, and prints the counts, with the committed counts if they differ.
fn count(goal: &Goal) -> Result<Counting, Failure> {
    let path = root().join(COMMITTED);
    let accept = goal.accept;
    let machine = Machine::here()?;
    let mut committed = Committed::load(&path)?;
    if !accept && committed.of(&machine).is_none() {
        let there = committed.machines();
        return Ok(Counting::Not(format!(
            "this is {machine}, and {COMMITTED} has counts of {there} alone; \
             `--accept` adds those of this machine"
        )));
    }
    let callgrind = match Callgrind::find(Tree::own().target.clone()) {
        Ok(callgrind) => callgrind,
        Err(why) => return Ok(Counting::Not(why)),
    };
    Cargo::new(["build", "--profile", "bench", "-p", PACKAGE]).run()?;
    let program = program()?;
    let all = acts(&program)?;
    if let Some(unknown) = goal
        .only
        .iter()
        .find(|&it| all.iter().all(|act| act.name != *it))
    {
        let known: Vec<_> = all.iter().map(|act| act.name.as_str()).collect();
        return Err(format!("no act `{unknown}`; there are {}", known.join(", ")).into());
    }
    let is_wanted = |act: &&Act| goal.only.is_empty() || goal.only.contains(&act.name);
    let acts: Vec<&Act> = all.iter().filter(is_wanted).collect();
    if let Err(why) = callgrind.try_out(&program) {
        return Ok(Counting::Not(why));
    }
    let mut listing = match Listing::find() {
        Ok(()) => Some(Listing::of(&program)?),
        Err(why) => {
            println!("RMWs and fences are not counted: {why}");
            None
        }
    };
    let known = if accept { None } else { committed.of(&machine) };
    let mut counts = Counts::new();
    let mut worse = Vec::new();
    println!("{}", line("act", |kind| kind.name().to_owned(), "what"));
    let profiles = profiles(&acts, &callgrind, &program);
    for (act, profiles) in acts.into_iter().zip(profiles) {
        let cost = act.count(profiles?, &program, listing.as_mut())?;
        let before = known.and_then(|counts| counts.get(&act.name));
        let (verdict, kinds) = match accept {
            true => (Verdict::Fine, Vec::new()),
            false => committed.verdict(&cost, before),
        };
        let Act { name, what, .. } = act;
        let shown = |cost: &Cost, kind: Kind| cost.get(&kind).map(|&count| kind.show(count));
        let or_none = |shown: Option<String>| shown.unwrap_or_else(|| "-".to_owned());
        println!("{}", line(name, |kind| or_none(shown(&cost, kind)), what));
        let change = before.and_then(|before| change(&cost, before));
        if verdict != Verdict::Fine || change.is_some() {
            let kinds: Vec<_> = kinds.into_iter().map(Kind::name).collect();
            let said = match verdict {
                Verdict::Fine => String::new(),
                _ => format!("{}{}", kinds.join(", "), verdict.text()),
            };
            let said = [change.unwrap_or_default(), said];
            let before = |kind| or_none(before.and_then(|before| shown(before, kind)));
            println!("{}", line("  committed", before, said.join(" ").trim()));
        }
        if verdict.is_worse() {
            worse.push(name.clone());
        }
        counts.insert(name.clone(), cost);
    }
    if accept {
        committed.accept(machine.clone(), counts);
        committed.forget_others(&machine, |name| all.iter().any(|act| act.name == name));
        committed.save(&path)?;
        table::update(&root().join(table::DOCUMENT), &committed)?;
    }
    Ok(match worse.is_empty() {
        true => Counting::Fine,
        false => Counting::Worse(worse),
    })
}

/// Runs the acts, as many at a time as there are processors: counts do not mind the company.
fn profiles(
    acts: &[&Act],
    callgrind: &Callgrind,
    program: &Path,
) -> Vec<Result<[Profile; 2], String>> {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let some = || {
        let mut done = Vec::new();
        loop {
            // Ordering: Relaxed: only the number matters.
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(act) = acts.get(at) else {
                return done;
            };
            let profiles = act.profiles(callgrind, program);
            done.push((at, profiles.map_err(|failure| failure.to_string())));
        }
    };
    let mut done = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(some)).collect();
        let done = threads.into_iter().map(|it| it.join());
        done.flat_map(|some| some.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect::<Vec<_>>()
    });
    done.sort_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, profiles)| profiles).collect()
}

/// How the program's own instructions differ from the committed ones, where runs of the same code
/// differ less.
fn change(cost: &Cost, before: &Cost) -> Option<String> {
    const NOISE: f64 = 0.005;
    let (now, before) = (cost.get(&Kind::Own)?, before.get(&Kind::Own)?);
    let more = now / before - 1.0;
    (more.abs() > NOISE).then(|| format!("own {:+.1} %", 100.0 * more))
}

/// A line of the output: a name, a column for each kind, and words.
fn line(name: &str, column: impl Fn(Kind) -> String, words: &str) -> String {
    let columns = Kind::ALL.map(|kind| {
        let width = kind.name().len().max(7);
        format!(" {:>width$}", column(kind))
    });
    format!("{name:<16}{}  {words}", columns.concat())
}

fn acts(program: &Path) -> Result<Vec<Act>, Failure> {
    let output = Command::new(program).arg("--list").output()?;
    let list = String::from_utf8(output.stdout)?;
    let acts: Option<Vec<_>> = list.lines().map(Act::parse).collect();
    let acts = acts.filter(|acts| !acts.is_empty());
    acts.ok_or_else(|| format!("`{PACKAGE} --list` lists no acts: {list}").into())
}

/// The program's path as callgrind calls it; the profile `bench` builds into the folder of
/// `release`.
fn program() -> Result<PathBuf, Failure> {
    let folder = Tree::own().target.join("release");
    let program = folder.join(format!("{PACKAGE}{EXE_SUFFIX}"));
    let found = program.canonicalize();
    found.map_err(|e| format!("can't find {}: {e}", program.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_asked_for_among_the_arguments_of_bench() {
        let args = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(is_wanted(&args("--accept --instructions")));
        assert!(!is_wanted(&args("--quick --only W1")));
        let parse = |line: &str| Options::try_parse_from(args(line));
        assert!(parse("bench --instructions --accept").unwrap().accept);
        let only = parse("bench --instructions --only step,send").unwrap();
        assert_eq!(only.only, ["step", "send"]);
        assert!(parse("bench --instructions --quick").is_err());
        assert!(parse("bench --accept").is_err());
    }

    #[test]
    fn a_line_has_a_column_for_each_kind() {
        let heading = line("act", |kind| kind.name().to_owned(), "what");
        let row = line("step", |kind| kind.show(12.345), "a step");
        assert_eq!(heading.find("what"), row.find("a step"));
        assert_eq!(
            row,
            "step                     12.3    12.3   12.35   12.35   12.35   12.35   12.35   \
             12.35  a step"
        );
    }

    #[test]
    fn a_change_is_told_though_it_is_within_the_tolerance() {
        let own = |count: f64| Cost::from([(Kind::Own, count)]);
        let told = [100.4, 101.0, 98.0].map(|now| change(&own(now), &own(100.0)));
        let expected = [None, Some("own +1.0 %"), Some("own -2.0 %")];
        assert_eq!(told, expected.map(|text| text.map(str::to_owned)));
    }

    #[test]
    fn the_committed_counts_can_be_read_and_the_program_is_a_package() {
        let committed = Committed::load(&root().join(COMMITTED)).unwrap();
        assert!(!committed.machines().is_empty());
        let manifest = std::fs::read_to_string(root().join("benches/count/Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("name = \"{PACKAGE}\"")));
    }
}
