//! Instructions in place of time: what decides between two versions of the code where times are lost
//! in noise.
//!
//! Each act runs twice under callgrind, with few rounds and with many, on one worker: the difference is
//! that of the rounds alone, without start and end. Only user code counts, so the same program gives
//! nearly the same count again; what is left are the few steps at which threads meet. Fences are full
//! ones, whether the kernel has `membarrier` or not.

use super::outputs::{root, write};
use super::text::figure;
use crate::contest::rustc;
use crate::whole::job::Error;
use crate::whole::{Contestant, Ganger, Gate};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::env;
use std::env::consts::{ARCH, EXE_SUFFIX};
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Something that Ganger does over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Act {
    /// A process continues: a step
    Step,
    /// A send that wakes a process, and the step in which it sends the next
    Send,
    /// A process submits another, which runs once, sends to it, and ends
    Spawn,
    /// A command, its handler, the completion, and the step that takes it
    Command,
    /// A push and a pop of a deque that has 8 items
    Deque,
    /// A send to a mailbox and its receipt
    Mailbox,
}

/// The counts that are committed, and how far from them a count may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Committed {
    /// As a part of a count.
    pub tolerance: f64,
    /// The architecture that they are of.
    pub arch: String,
    /// The compiler that they are of.
    pub rustc: String,
    /// Instructions of each act.
    pub counts: BTreeMap<String, f64>,
}

/// How far from the committed counts a new one may be, unless they say otherwise.
const TOLERANCE: f64 = 0.02;

impl Act {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn what(self) -> String {
        let value = self.to_possible_value();
        let help = value.and_then(|value| value.get_help().map(ToString::to_string));
        help.unwrap_or_default()
    }

    /// How often it is done: few times, and many times.
    fn rounds(self) -> [u64; 2] {
        match self {
            // A tree of so many processes, with three levels and with four.
            Self::Spawn => [1_111, 11_111],
            _ => [2_000, 12_000],
        }
    }

    /// Does it, few times or many.
    ///
    /// # Errors
    /// When the scheduler refuses something.
    ///
    /// # Panics
    /// When a queue has lost something.
    pub fn run(self, more: bool) -> Result<(), Error> {
        let rounds = self.rounds()[usize::from(more)];
        let ganger = || Ganger::new(1, Gate::new());
        match self {
            Self::Step => ganger()?.yields(1, rounds).map(drop),
            // A round trip is two of them.
            Self::Send => ganger()?.ping_pong(1, rounds / 2).map(drop),
            Self::Spawn => ganger()?.skynet(if more { 4 } else { 3 }).map(drop),
            Self::Command => ganger()?.command_inline(rounds).map(drop),
            Self::Deque => {
                deque(rounds);
                Ok(())
            }
            Self::Mailbox => {
                mailbox(rounds);
                Ok(())
            }
        }
    }
}

fn deque(rounds: u64) {
    const DEPTH: u64 = 8;
    let worker = ganger_deque::Worker::new();
    for _ in 0..rounds / DEPTH {
        (0..DEPTH).for_each(|item| worker.push(black_box(item)));
        (0..DEPTH).for_each(|_| assert!(black_box(worker.pop()).is_some()));
    }
}

fn mailbox(rounds: u64) {
    let (sender, receiver) = ganger_mpsc::channel();
    for item in 0..rounds {
        assert!(sender.send(black_box(item)).is_ok());
        assert!(black_box(receiver.try_recv()).is_ok());
    }
}

/// Counts every act, prints the counts beside the committed ones, and says whether all are at most
/// what the tolerance allows. With `accept`, commits them instead.
///
/// Blocks for about a minute.
///
/// # Errors
/// When valgrind is not there, a run fails, or the committed counts are of another machine.
pub fn count(accept: bool) -> Result<bool, String> {
    let committed = match accept {
        true => None,
        false => Some(Committed::load(&committed_path())?),
    };
    let program = beside("ganger-count")?;
    let mut counts = BTreeMap::new();
    println!(
        "{:<9} {:>14} {:>10}  what",
        "act", "instructions", "committed"
    );
    let mut is_fine = true;
    for &act in Act::value_variants() {
        let [few, many] = [false, true].map(|more| instructions(&program, act, more));
        let [first, second] = act.rounds();
        let count = (many? as f64 - few? as f64) / (second - first) as f64;
        let known = committed
            .as_ref()
            .and_then(|it| it.counts.get(&act.name()).copied());
        let verdict = match (&committed, known) {
            (Some(committed), Some(known)) => committed.verdict(count, known),
            _ => Verdict::New,
        };
        is_fine &= verdict != Verdict::More;
        let shown = known.map_or_else(|| "–".to_owned(), figure);
        println!(
            "{:<9} {:>14} {shown:>10}  {}{}",
            act.name(),
            figure(count),
            act.what(),
            verdict.text()
        );
        counts.insert(act.name(), (count * 10.0).round() / 10.0);
    }
    if accept {
        let counted = Committed {
            tolerance: TOLERANCE,
            arch: ARCH.to_owned(),
            rustc: rustc().unwrap_or_default(),
            counts,
        };
        counted.save(&committed_path())?;
    }
    Ok(is_fine)
}

/// What a count is beside the committed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    More,
    Less,
    Same,
    New,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Self::More => ": MORE than the tolerance allows",
            Self::Less => ": less; commit it with --accept",
            Self::Same | Self::New => "",
        }
    }
}

impl Committed {
    fn load(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = fs::read_to_string(path);
        let text =
            text.map_err(|error| format!("can't read {shown}: {error}; --accept makes it"))?;
        let committed: Self =
            serde_json::from_str(&text).map_err(|error| format!("{shown}: {error}"))?;
        let here = rustc().unwrap_or_default();
        if (committed.arch.as_str(), &committed.rustc) != (ARCH, &here) {
            return Err(format!(
                "{shown} is of {} on {}, and this is {here} on {ARCH}: they can't be compared; \
                 --accept counts anew",
                committed.rustc, committed.arch
            ));
        }
        Ok(committed)
    }

    fn save(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        write(path, |out| writeln!(out, "{text}"))
    }

    fn verdict(&self, count: f64, known: f64) -> Verdict {
        let slack = known * self.tolerance;
        match count - known {
            more if more > slack => Verdict::More,
            less if less < -slack => Verdict::Less,
            _ => Verdict::Same,
        }
    }
}

/// How many instructions one run takes.
fn instructions(program: &Path, act: Act, more: bool) -> Result<u64, String> {
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .arg(act.name())
        .args(more.then_some("--more"))
        .env("GANGER_MEMBARRIER", "off");
    let output = valgrind.output().map_err(|error| {
        format!("can't start valgrind: {error}. Its package is called valgrind in most systems")
    })?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!(
            "`valgrind … ganger-count {}`: {}\n{said}",
            act.name(),
            output.status
        ));
    }
    collected(&said).ok_or_else(|| format!("valgrind does not say how many: {said}"))
}

/// The number in `==123== Collected : 456789`.
fn collected(said: &str) -> Option<u64> {
    let line = said
        .lines()
        .find_map(|line| line.split_once("Collected : "))?;
    line.1.split_whitespace().next()?.parse().ok()
}

fn committed_path() -> PathBuf {
    root().join("benches").join("instructions.json")
}

fn beside(name: &str) -> Result<PathBuf, String> {
    let own = env::current_exe().map_err(|error| error.to_string())?;
    let path = own.with_file_name(format!("{name}{EXE_SUFFIX}"));
    match path.is_file() {
        true => Ok(path),
        false => Err(format!(
            "{} is not there: `cargo xtask bench` builds it",
            path.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_what_callgrind_says() {
        let said = "==7== Callgrind, a tool\n==7== Events    : Ir\n==7== Collected : 1234567\n";
        assert_eq!(collected(said), Some(1_234_567));
        assert_eq!(collected("==7== nothing"), None);
    }

    #[test]
    fn every_act_is_done_twice_with_different_rounds() {
        for &act in Act::value_variants() {
            let [few, many] = act.rounds();
            assert!(few < many, "{act:?}");
            act.run(false).unwrap();
            act.run(true).unwrap();
        }
    }

    #[test]
    fn more_than_the_tolerance_is_more() {
        let committed = Committed {
            tolerance: 0.02,
            arch: ARCH.to_owned(),
            rustc: rustc().unwrap(),
            counts: BTreeMap::from([("step".to_owned(), 100.0)]),
        };
        let verdicts = [97.0, 99.0, 101.9, 102.1].map(|count| committed.verdict(count, 100.0));
        let expected = [Verdict::Less, Verdict::Same, Verdict::Same, Verdict::More];
        assert_eq!(verdicts, expected);

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("counts.json");
        let error = Committed::load(&path).unwrap_err();
        assert!(error.contains("--accept makes it"), "{error}");
        committed.save(&path).unwrap();
        assert_eq!(Committed::load(&path), Ok(committed.clone()));
        let other = Committed {
            arch: "pdp11".to_owned(),
            ..committed
        };
        other.save(&path).unwrap();
        let error = Committed::load(&path).unwrap_err();
        assert!(
            error.contains("on pdp11") && error.contains("can't be compared"),
            "{error}"
        );
    }
}
