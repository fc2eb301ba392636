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
use crate::root::Tree;
use clap::Parser;
use committed::{COLUMNS, Committed, Cost, Counts};
use listing::{FENCES, Listing, RMWS, listing};
use profile::{Profile, profile};
use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

const PACKAGE: &str = "ganger-count";

/// The exit code of a call that can't be carried out.
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

/// Returns whether these arguments of `cargo xtask bench` ask for counts.
pub(crate) fn is_wanted(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg == "--instructions")
}

/// Counts as the arguments say.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let name = OsString::from("bench");
    let said = Options::parse_from([&name].into_iter().chain(args));
    let (error, code) = match count(&said) {
        Ok(Ok(None)) => return ExitCode::SUCCESS,
        Ok(Ok(Some(complaint))) => (complaint, ExitCode::FAILURE),
        Ok(Err(why)) => (format!("not counted: {why}"), ExitCode::from(MISUSED)),
        Err(failure) => (failure.to_string(), ExitCode::from(MISUSED)),
    };
    eprintln!("error: {error}");
    code
}

/// Runs the gate's step, which shows the counts, and passes. Returns which acts take more than is
/// committed, or why nothing can be counted or compared.
///
/// The same code built in two folders differs by up to 7 % in an act, since rustc orders and
/// inlines functions differently. So a count above the committed count is no proof of a fault.
pub(crate) fn gate() -> Result<Option<String>, Failure> {
    let counted = count(&Options::default())?;
    Ok(counted.unwrap_or_else(|why| Some(format!("not counted: {why}"))))
}

/// The allocating functions.
const ALLOCATORS: &str = "malloc calloc realloc posix_memalign aligned_alloc";

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
        let fields: Vec<_> = line.splitn(4, '\t').map(str::to_owned).collect();
        let [name, few, many, what] = fields.try_into().ok()?;
        let rounds = [few.parse().ok()?, many.parse().ok()?];
        Some(Self { name, rounds, what })
    }

    /// Returns the costs of a round; atomic instructions only if a listing of them is given.
    fn count(&self, program: &Path, listing: Option<&Listing>) -> Result<Cost, Failure> {
        let folder = Tree::own().target;
        let run = |rounds: u64| profile(&folder, program, &[&self.name, &rounds.to_string()]);
        let [few, many] = self.rounds;
        Ok(self.difference([&run(few)?, &run(many)?], listing))
    }

    fn difference(&self, [few, many]: [&Profile; 2], listing: Option<&Listing>) -> Cost {
        let rounds = (self.rounds[1] - self.rounds[0]) as f64;
        let of = |profile: &Profile, column| match column {
            "instructions" => profile.instructions,
            "own" => profile.own.values().sum(),
            "allocations" => {
                let calls = ALLOCATORS
                    .split(' ')
                    .filter_map(|name| profile.calls.get(name));
                calls.sum()
            }
            column => {
                let all = listing.into_iter().flatten();
                let these = all
                    .filter(|(_, it)| **it == column)
                    .map(|(address, _)| address);
                these.filter_map(|address| profile.own.get(address)).sum()
            }
        };
        let mut cost = Cost::new();
        for (column, parts) in COLUMNS.into_iter().zip([10.0, 10.0, 100.0, 100.0, 100.0]) {
            if listing.is_some() || ![RMWS, FENCES].contains(&column) {
                let count = of(many, column).saturating_sub(of(few, column)) as f64 / rounds;
                cost.insert(column.to_owned(), (count * parts).round() / parts);
            }
        }
        cost
    }
}

/// Counts every act, and prints the counts, with the committed counts if they differ. Returns a
/// complaint of the acts whose counts are too high, or not committed; or why nothing was counted.
fn count(options: &Options) -> Result<Result<Option<String>, String>, Failure> {
    let machine = committed::here()?;
    let mut committed = Committed::load()?;
    let known = committed.of(&machine).cloned();
    if !options.accept && known.is_none() {
        let machine = committed::called(&machine);
        let why = format!("no counts of {machine} are committed; `--accept` adds them");
        return Ok(Err(why));
    }
    if let Err(error) = Command::new("valgrind").arg("--version").output() {
        return Ok(Err(format!("can't start valgrind: {error}")));
    }
    Cargo::new(&format!("build --profile bench -p {PACKAGE}")).run()?;
    // The profile `bench` builds into the folder of `release`; callgrind has canonical names.
    let program = Tree::own()
        .target
        .join(format!("release/{PACKAGE}{EXE_SUFFIX}"));
    let program = program.canonicalize()?;
    let list = String::from_utf8(Command::new(&program).arg("--list").output()?.stdout)?;
    let acts: Option<Vec<_>> = list.lines().map(Act::parse).collect();
    let mut acts = acts.ok_or_else(|| format!("`{PACKAGE} --list` lists no acts: {list}"))?;
    let is_there = |name: &&String| acts.iter().any(|act| act.name == **name);
    if let Some(unknown) = options.only.iter().find(|name| !is_there(name)) {
        return Err(format!("no act `{unknown}`; `{PACKAGE} --list` has them").into());
    }
    acts.retain(|act| options.only.is_empty() || options.only.contains(&act.name));
    // An older valgrind does not know all instructions of a newer processor.
    if let Err(why) = profile(&Tree::own().target, &program, &["--list"]) {
        return Ok(Err(why.to_string()));
    }
    let listing = listing(&program);
    if let Err(why) = &listing {
        println!("RMWs and fences are not counted: {why}");
    }
    // Programs at the same time change no count of instructions.
    let costs = at_a_time(cores(), acts.iter().collect(), |act: &Act| {
        let cost = act.count(&program, listing.as_ref().ok());
        let cost = cost.map_err(|failure| failure.to_string())?;
        Ok((act.name.clone(), cost))
    });
    let costs = costs.into_iter().collect::<Result<Counts, String>>()?;
    let mut worse = Vec::new();
    let columns = COLUMNS.map(|column| format!(" {column:>12}")).concat();
    println!("{:<16}{columns}  what", "act");
    for Act { name, what, .. } in &acts {
        let cost = &costs[name];
        println!("{}", line(name, Some(cost), what));
        let before = known.as_ref().and_then(|counts| counts.get(name));
        if let Some((is_worse, verdict)) = committed.verdict(cost, before) {
            println!("{}", line("  committed", before, &verdict));
            worse.extend(is_worse.then_some(&**name));
        }
    }
    let accept = "`cargo xtask bench --instructions --accept` commits those that are meant";
    let worse = worse.join(", ");
    let complaint = format!("{worse} take more than is committed, or are not; {accept}");
    let is_fine = worse.is_empty() || options.accept;
    if options.accept {
        let all = known.filter(|_| !options.only.is_empty());
        let counts = all.into_iter().flatten().chain(costs).collect();
        committed.accept(machine, counts);
        committed.save()?;
        table::update(&committed)?;
    }
    Ok(Ok((!is_fine).then_some(complaint)))
}

/// Returns a line of the output: a name, the columns, and words; `-` for a count that was not made.
fn line(name: &str, cost: Option<&Cost>, words: &str) -> String {
    let columns = COLUMNS.map(|column| match cost.and_then(|cost| cost.get(column)) {
        Some(count) => format!(" {count:>12.2}"),
        None => format!(" {:>12}", "-"),
    });
    format!("{name:<16}{}  {words}", columns.concat())
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
        let said = parse("bench --instructions --accept --only step,send").unwrap();
        assert!(said.accept && said.only == ["step", "send"]);
        assert!(parse("bench --instructions --quick").is_err());
    }

    #[test]
    fn a_round_costs_what_more_rounds_cost_more() {
        let profile = |instructions, own| Profile {
            instructions,
            own: [(1, own)].into(),
            calls: [("malloc".to_owned(), own)].into(),
        };
        let act = Act::parse("step\t2\t12\ta step: one").unwrap();
        assert_eq!(act.what, "a step: one");
        let (few, many) = (profile(1_000, 30), profile(5_154, 90));
        let cost = |listing| Vec::from_iter(act.difference([&few, &many], listing).into_values());
        assert_eq!(cost(None), [6.0, 415.4, 6.0]);
        let all = cost(Some(&Listing::from([(1, RMWS)])));
        assert_eq!(all, [6.0, 0.0, 415.4, 6.0, 6.0]);
        assert_eq!(Act::parse("step\t2\tmany\ta step"), None);
    }
}
