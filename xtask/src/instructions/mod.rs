//! Instructions in place of time. They decide between two versions of the code where times are lost
//! in noise, and the gate can hold the code to them.
//!
//! The program `ganger-count` does each act twice on a single worker, with few rounds and with
//! many. The difference is the cost of the rounds, without start and end. The program is built
//! alone: together with another package its dependencies could have other features.
//!
//! On x86-64 the atomic instructions are counted as well.

mod committed;
mod listing;
mod profile;
mod table;

use crate::Failure;
use crate::cargo::Cargo;
use crate::loom::{at_a_time, cores};
use crate::root::{Tree, root};
use clap::Parser;
use committed::{COLUMNS, Committed, Cost, Counts, Machine, Verdict};
use listing::{Atomic, Listing};
use profile::Profile;
use std::collections::BTreeMap;
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;

const PACKAGE: &str = "ganger-count";
const COMMITTED: &str = "benches/instructions.json";

/// A program's exit code for arguments that it can't carry out.
const MISUSED: u8 = 2;

/// Counts the costs of a step, a send, a spawn, a question, a channel, a timer, a socket and other
/// acts, under callgrind: instructions, read-modify-writes, fences, allocations
///
/// The counts, except libraries' instructions, are compared with benches/instructions.json. A line
/// below an act has the committed counts where they differ. Exits with 1 if a count is above
/// the committed count by more than its tolerance, and with 2 if it can't count or has nothing to
/// compare with.
#[derive(Debug, Default, Parser)]
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
    match count(&said) {
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
    Ok(match count(&Options::default())? {
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

/// An act that the program repeats, with few rounds and with many.
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

    /// Returns the costs of a round; atomic instructions only if a listing of them is given.
    fn count(&self, program: &Path, listing: Option<&Listing>) -> Result<Cost, Failure> {
        let folder = Tree::own().target;
        let run = |rounds: u64| {
            let args = [&*self.name, &rounds.to_string()];
            Profile::of_run(&folder, program, &args)
        };
        Ok(self.difference([&run(self.rounds[0])?, &run(self.rounds[1])?], listing))
    }

    fn difference(&self, [few, many]: [&Profile; 2], listing: Option<&Listing>) -> Cost {
        let rounds = (self.rounds[1] - self.rounds[0]) as f64;
        let each = |of: &dyn Fn(&Profile) -> u64, parts: f64| {
            let count = of(many).saturating_sub(of(few)) as f64 / rounds;
            (count * parts).round() / parts
        };
        let allocators = [
            "malloc",
            "calloc",
            "realloc",
            "posix_memalign",
            "aligned_alloc",
        ];
        let atomics = |kind| listing.map(|it| each(&|profile| it.executed(profile, kind), 100.0));
        Cost {
            instructions: each(&|profile| profile.instructions, 10.0),
            own: each(&|profile| profile.own.values().sum(), 10.0),
            rmws: atomics(Atomic::ReadModifyWrite),
            fences: atomics(Atomic::Fence),
            allocations: each(&|profile| profile.calls(&allocators), 100.0),
        }
    }
}

/// Counts every act, and prints the counts, with the committed counts if they differ.
fn count(options: &Options) -> Result<Counting, Failure> {
    let path = root().join(COMMITTED);
    let machine = Machine::here()?;
    let mut committed = Committed::load(&path)?;
    let known = committed.of(&machine).cloned();
    if !options.accept && known.is_none() {
        let there = committed.machines();
        return Ok(Counting::Not(format!(
            "this is {machine}, and {COMMITTED} has counts of {there} alone; \
             `--accept` adds those of this machine"
        )));
    }
    if let Err(error) = Command::new("valgrind").arg("--version").output() {
        return Ok(Counting::Not(format!("can't start valgrind: {error}")));
    }
    Cargo::new(["build", "--profile", "bench", "-p", PACKAGE]).run()?;
    let program = program()?;
    let mut acts = acts(&program)?;
    let is_there = |name: &&String| acts.iter().any(|act| act.name == **name);
    if let Some(unknown) = options.only.iter().find(|name| !is_there(name)) {
        return Err(format!("no act `{unknown}`; `{PACKAGE} --list` has them").into());
    }
    acts.retain(|act| options.only.is_empty() || options.only.contains(&act.name));
    // Processors have instructions that an older valgrind does not know.
    if let Err(why) = Profile::of_run(&Tree::own().target, &program, &["--list"]) {
        return Ok(Counting::Not(why.to_string()));
    }
    let listing = Listing::of(&program);
    if let Err(why) = &listing {
        println!("RMWs and fences are not counted: {why}");
    }
    let costs = Mutex::new(BTreeMap::new());
    // Counts do not mind the company.
    at_a_time(cores(), acts.iter().collect(), |act: &Act| {
        let cost = act.count(&program, listing.as_ref().ok());
        let cost = cost.map_err(|failure| failure.to_string());
        // A lock is poisoned only if a thread has panicked, and then the caller panics too.
        if let Ok(mut costs) = costs.lock() {
            costs.insert(act.name.clone(), cost);
        }
    });
    let costs = costs.into_inner()?.into_iter();
    let costs: Counts = costs
        .map(|(act, cost)| Ok((act, cost?)))
        .collect::<Result<_, String>>()?;
    let mut worse = Vec::new();
    println!("{}", line("act", COLUMNS.map(str::to_owned), "what"));
    for Act { name, what, .. } in &acts {
        let cost = &costs[name];
        println!("{}", line(name, cost.shown(), what));
        let before = known.as_ref().and_then(|counts| counts.get(name));
        let verdict = committed.verdict(cost, before);
        if verdict != Verdict::Fine {
            let shown = before.map_or_else(|| COLUMNS.map(|_| "-".to_owned()), Cost::shown);
            println!("{}", line("  committed", shown, &verdict.to_string()));
        }
        if matches!(verdict, Verdict::More(_) | Verdict::New) {
            worse.push(name.clone());
        }
    }
    if options.accept {
        let mut counts = known
            .filter(|_| !options.only.is_empty())
            .unwrap_or_default();
        counts.extend(costs);
        committed.accept(machine, counts);
        committed.save(&path)?;
        table::update(&root().join(table::DOCUMENT), &committed)?;
    } else if !worse.is_empty() {
        return Ok(Counting::Worse(worse));
    }
    Ok(Counting::Fine)
}

/// A line of the output: a name, the columns, and words.
fn line(name: &str, columns: [String; 5], words: &str) -> String {
    let columns = columns.map(|column| format!(" {column:>12}"));
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
    fn a_round_costs_what_more_rounds_cost_more() {
        let profile = |instructions, own| Profile {
            instructions,
            own: [(1, own)].into(),
            ..Profile::default()
        };
        let act = Act::parse("step\t2\t12\ta step: one").unwrap();
        assert_eq!(act.what, "a step: one");
        let cost = act.difference([&profile(1_000, 30), &profile(5_154, 90)], None);
        let expected = Cost {
            instructions: 415.4,
            own: 6.0,
            ..Cost::default()
        };
        assert_eq!(cost, expected);
        assert_eq!(Act::parse("step\t2\tmany\ta step"), None);
    }
}
