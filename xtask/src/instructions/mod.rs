//! Instructions in place of time: what decides between two versions of the code where times are lost
//! in noise, and what the gate can hold the code to.
//!
//! Each act of the program `ganger-count` is counted twice, with few rounds and with many, on one
//! worker: the difference is that of the rounds alone, without start and end. The program is built
//! alone, for with another package beside it its dependencies could have other features.

mod callgrind;
mod committed;

use crate::Failure;
use crate::cargo::Cargo;
use crate::root::{Tree, root};
use callgrind::Callgrind;
use clap::Parser;
use committed::{Committed, Counts, Machine, Verdict};
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const PACKAGE: &str = "ganger-count";
const COMMITTED: &str = "benches/instructions.json";

/// What a program exits with that can't do what it was told.
const MISUSED: u8 = 2;

/// Counts the instructions of a step, a send, a spawn, a command and of the queues, under callgrind
///
/// They are compared with benches/instructions.json. Exits with 1 when a count is above the committed
/// one by more than the tolerance there, and with 2 when it can't count or has nothing to compare with.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench", max_term_width = 100)]
struct Options {
    /// Counts instructions in place of measuring time
    #[arg(long, required = true)]
    instructions: bool,

    /// Writes the counts to benches/instructions.json, for this machine's architecture, compiler and C
    /// library
    #[arg(long)]
    accept: bool,
}

/// What became of the counting.
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

/// Does what those arguments say.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let name = OsString::from("bench");
    let Options { accept, .. } = Options::parse_from([&name].into_iter().chain(args));
    match count(accept) {
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

/// The gate's step. It passes where nothing can be counted or compared, and returns why that is.
pub(crate) fn gate() -> Result<Option<String>, Failure> {
    match count(false)? {
        Counting::Fine => Ok(None),
        Counting::Worse(acts) => Err(complaint(&acts).into()),
        Counting::Not(why) => Ok(Some(format!("not counted: {why}"))),
    }
}

fn complaint(acts: &[String]) -> String {
    let acts = acts.join(", ");
    format!(
        "instructions of {acts} are more than {COMMITTED} allows, or not in it; \
         `cargo xtask bench --instructions --accept` commits those that are meant"
    )
}

/// Counts every act, and prints the counts beside the committed ones. With `accept`, commits them.
fn count(accept: bool) -> Result<Counting, Failure> {
    let path = root().join(COMMITTED);
    let machine = Machine::here()?;
    let mut committed = Committed::load(&path)?;
    if !accept && committed.of(&machine).is_none() {
        let there = committed.machines();
        return Ok(Counting::Not(format!(
            "this is {machine}, and {COMMITTED} has counts of {there} alone; \
             `--accept` adds those of this machine"
        )));
    }
    let callgrind = match Callgrind::find() {
        Ok(callgrind) => callgrind,
        Err(why) => return Ok(Counting::Not(why)),
    };
    Cargo::new(["build", "--profile", "bench", "-p", PACKAGE]).run()?;
    let program = program();
    let acts = acts(&program)?;
    if let Err(why) = callgrind.try_out(&program) {
        return Ok(Counting::Not(why));
    }
    let known = if accept { None } else { committed.of(&machine) };
    let mut counts = Counts::new();
    let mut worse = Vec::new();
    println!(
        "{:<13} {:>12} {:>10}  what",
        "act", "instructions", "committed"
    );
    for act in acts {
        let count = act.count(&callgrind, &program)?;
        let before = known.and_then(|counts| counts.get(&act.name)).copied();
        let verdict = match before {
            _ if accept => Verdict::Fine,
            Some(before) => committed.verdict(count, before),
            None => Verdict::New,
        };
        let shown = before.map_or_else(|| "-".to_owned(), |before| format!("{before:.1}"));
        let Act { name, what, .. } = act;
        println!(
            "{name:<13} {count:>12.1} {shown:>10}  {what}{}",
            verdict.text()
        );
        if verdict.is_worse() {
            worse.push(name.clone());
        }
        counts.insert(name, count);
    }
    if accept {
        committed.accept(machine, counts);
        committed.save(&path)?;
    }
    Ok(match worse.is_empty() {
        true => Counting::Fine,
        false => Counting::Worse(worse),
    })
}

/// Something that the program does so many times, few or many.
#[derive(Debug, PartialEq, Eq)]
struct Act {
    name: String,
    rounds: [u64; 2],
    what: String,
}

impl Act {
    /// Reads a line of `ganger-count --list`.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(4, '\t');
        let mut next = || fields.next();
        let (name, few, many, what) = (next()?, next()?, next()?, next()?);
        Some(Self {
            name: name.to_owned(),
            rounds: [few.parse().ok()?, many.parse().ok()?],
            what: what.to_owned(),
        })
    }

    /// Instructions a round, to a tenth.
    fn count(&self, callgrind: &Callgrind, program: &Path) -> Result<f64, Failure> {
        let [few, many] = self.rounds;
        let total = |rounds: u64| callgrind.count(program, &[&self.name, &rounds.to_string()]);
        let more = total(many)?.saturating_sub(total(few)?);
        Ok((10.0 * more as f64 / (many - few) as f64).round() / 10.0)
    }
}

fn acts(program: &Path) -> Result<Vec<Act>, Failure> {
    let output = Command::new(program).arg("--list").output()?;
    let list = String::from_utf8(output.stdout)?;
    let acts: Option<Vec<_>> = list.lines().map(Act::parse).collect();
    let acts = acts.filter(|acts| !acts.is_empty());
    acts.ok_or_else(|| format!("`{PACKAGE} --list` lists no acts: {list}").into())
}

/// Where cargo has put it: the folder of the profile `bench` is that of `release`.
fn program() -> PathBuf {
    let folder = Tree::own().target.join("release");
    folder.join(format!("{PACKAGE}{EXE_SUFFIX}"))
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
    fn acts_are_read_from_lines() {
        let act = Act::parse("step\t2\t12\ta step: one").unwrap();
        let expected = Act {
            name: "step".to_owned(),
            rounds: [2, 12],
            what: "a step: one".to_owned(),
        };
        assert_eq!(act, expected);
        assert_eq!(Act::parse("step\t2\tmany\ta step"), None);
        assert_eq!(Act::parse("step\t2\t12"), None);
    }

    #[test]
    fn the_committed_counts_can_be_read_and_the_program_is_a_package() {
        let committed = Committed::load(&root().join(COMMITTED)).unwrap();
        assert!(!committed.machines().is_empty());
        let manifest = std::fs::read_to_string(root().join("benches/count/Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("name = \"{PACKAGE}\"")));
    }
}
