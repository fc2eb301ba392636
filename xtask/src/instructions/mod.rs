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
mod touched;
mod waits;

use crate::Failure;
use crate::cargo::Cargo;
use crate::root::{Tree, root};
use callgrind::Callgrind;
use clap::Parser;
use committed::{Committed, Counts, Machine, Verdict};
use cost::{Act, Cost, Kind};
use listing::Listing;
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const PACKAGE: &str = "ganger-count";
const COMMITTED: &str = "benches/instructions.json";

/// A program's exit code for arguments that it can't carry out.
const MISUSED: u8 = 2;

/// Counts the costs of a step, a send, a spawn, a command and the queues, under callgrind:
/// instructions, read-modify-writes, fences, allocations, cache lines, loads that wait for stores
///
/// All counts except cache lines and libraries' read-modify-writes are compared with
/// benches/instructions.json. Exits with 1 if a count is above the committed count by more than its
/// tolerance, and with 2 if it can't count or has nothing to compare with.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench", max_term_width = 100)]
struct Options {
    /// Counts instructions in place of measuring time
    #[arg(long, required = true)]
    instructions: bool,

    /// Writes the counts to benches/instructions.json, for this machine's architecture, compiler
    /// and C library, and the table of docs/PERFORMANCE.md
    #[arg(long)]
    accept: bool,
}

/// The purpose of counting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// Checks that no compared count is too high.
    Gate,
    /// To see all counts.
    Compare,
    /// To commit them.
    Accept,
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
    let Options { accept, .. } = Options::parse_from([&name].into_iter().chain(args));
    let goal = if accept { Goal::Accept } else { Goal::Compare };
    match count(goal) {
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

/// Runs the gate's step. Passes if nothing can be counted or compared, and returns the reason.
pub(crate) fn gate() -> Result<Option<String>, Failure> {
    match count(Goal::Gate)? {
        Counting::Fine => Ok(None),
        Counting::Worse(acts) => Err(complaint(&acts).into()),
        Counting::Not(why) => Ok(Some(format!("not counted: {why}"))),
    }
}

fn complaint(acts: &[String]) -> String {
    let acts = acts.join(", ");
    format!(
        "{acts} take more than {COMMITTED} allows, or not in it; \
         `cargo xtask bench --instructions --accept` commits those that are meant"
    )
}

/// Counts every act, and prints the counts, with the committed counts if they differ.
fn count(goal: Goal) -> Result<Counting, Failure> {
    let path = root().join(COMMITTED);
    let accept = goal == Goal::Accept;
    let machine = Machine::here()?;
    let mut committed = Committed::load(&path)?;
    if !accept && committed.of(&machine).is_none() {
        let there = committed.machines();
        return Ok(Counting::Not(format!(
            "this is {machine}, and {COMMITTED} has counts of {there} alone; \
             `--accept` adds those of this machine"
        )));
    }
    let callgrind = match Callgrind::find(Tree::own().target.join("callgrind.out")) {
        Ok(callgrind) => callgrind,
        Err(why) => return Ok(Counting::Not(why)),
    };
    Cargo::new(["build", "--profile", "bench", "-p", PACKAGE]).run()?;
    let program = program()?;
    let acts = acts(&program)?;
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
    for act in acts {
        let mut cost = act.count(&callgrind, &program, listing.as_mut())?;
        if goal != Goal::Gate {
            act.trace(&program, &mut cost)?;
        }
        let before = known.and_then(|counts| counts.get(&act.name));
        let (verdict, kinds) = match accept {
            true => (Verdict::Fine, Vec::new()),
            false => committed.verdict(&cost, before),
        };
        let Act { name, what, .. } = act;
        let shown = |cost: &Cost, kind: Kind| cost.get(&kind).map(|&count| kind.show(count));
        let or_none = |shown: Option<String>| shown.unwrap_or_else(|| "-".to_owned());
        println!("{}", line(&name, |kind| or_none(shown(&cost, kind)), &what));
        if verdict != Verdict::Fine {
            let kinds: Vec<_> = kinds.into_iter().map(Kind::name).collect();
            let (kinds, text) = (kinds.join(", "), verdict.text());
            let said = format!("{kinds}{text}");
            let before = |kind| or_none(before.and_then(|before| shown(before, kind)));
            println!("{}", line("  committed", before, &said));
        }
        if verdict.is_worse() {
            worse.push(name.clone());
        }
        counts.insert(name, cost);
    }
    if accept {
        committed.accept(machine, counts);
        committed.save(&path)?;
        table::update(&root().join(table::DOCUMENT), &committed)?;
    }
    Ok(match worse.is_empty() {
        true => Counting::Fine,
        false => Counting::Worse(worse),
    })
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
             12.35    12.3    12.3  a step"
        );
    }

    #[test]
    fn the_committed_counts_can_be_read_and_the_program_is_a_package() {
        let committed = Committed::load(&root().join(COMMITTED)).unwrap();
        assert!(!committed.machines().is_empty());
        let manifest = std::fs::read_to_string(root().join("benches/count/Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("name = \"{PACKAGE}\"")));
    }
}
