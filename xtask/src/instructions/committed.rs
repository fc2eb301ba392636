//! The committed counts, each set with its kind of machine. Another compiler makes other code, and
//! another C library allocates and copies in another way. So a set is compared with counts of its
//! own kind of machine only.

use crate::Failure;
use crate::root::root;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::env::consts::{ARCH, OS};
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The costs of each act.
pub(super) type Counts = BTreeMap<String, Cost>;

/// What a round of an act takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cost {
    /// Of all code.
    pub(super) instructions: f64,
    /// Instructions of the program itself.
    pub(super) own: f64,
    /// Read-modify-writes of the program itself, where they can be told from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rmws: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fences: Option<f64>,
    pub(super) allocations: f64,
}

/// The names of a cost's columns.
pub(super) const COLUMNS: [&str; 5] = ["instructions", "own", "RMWs", "fences", "allocs"];

impl Cost {
    pub(super) fn columns(&self) -> [Option<f64>; 5] {
        let Self {
            instructions,
            own,
            rmws,
            fences,
            allocations,
        } = *self;
        [
            Some(instructions),
            Some(own),
            rmws,
            fences,
            Some(allocations),
        ]
    }

    /// Returns the columns as text; `-` for a count that was not made.
    pub(super) fn shown(&self) -> [String; 5] {
        self.columns().map(|count| match count {
            Some(count) => format!("{count:.2}"),
            None => "-".to_owned(),
        })
    }
}

/// The properties of a machine on which a count depends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Machine {
    arch: String,
    rustc: String,
    libc: String,
}

/// The file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Committed {
    /// The tolerance above a committed count, as a fraction.
    tolerance: f64,
    /// The tolerance above a count other than of instructions, unless the fraction is more.
    slack: f64,
    sets: Vec<Set>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    machine: Machine,
    counts: Counts,
}

/// Counts compared with the committed counts, with the columns that say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    More(Vec<&'static str>),
    New,
    Less(Vec<&'static str>),
    Fine,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::More(columns) => {
                write!(f, "{}: MORE than the tolerance allows", columns.join(", "))
            }
            Self::New => write!(f, "NOT committed yet"),
            Self::Less(columns) => write!(f, "{}: less; --accept commits it", columns.join(", ")),
            Self::Fine => Ok(()),
        }
    }
}

impl Machine {
    /// Returns this machine, with the compiler of the workspace's folder.
    pub(super) fn here() -> Result<Self, Failure> {
        let rustc = first_words(Command::new("rustc").arg("--version"));
        // Elsewhere the library comes with the system.
        let libc = first_words(Command::new("getconf").arg("GNU_LIBC_VERSION"));
        Ok(Self {
            arch: ARCH.to_owned(),
            rustc: rustc.ok_or("can't run `rustc --version`")?,
            libc: libc.unwrap_or_else(|| format!("{OS}'s libc")),
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} with {}", self.rustc, self.arch, self.libc)
    }
}

/// A name and a version, where the command says them.
fn first_words(command: &mut Command) -> Option<String> {
    let output = command.current_dir(root()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut words = text.split_whitespace();
    let name_and_version = format!("{} {}", words.next()?, words.next()?);
    output.status.success().then_some(name_and_version)
}

impl Committed {
    pub(super) fn load(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|e| format!("can't read {shown}: {e}"))?;
        Ok(serde_json::from_str(&text).map_err(|e| format!("{shown}: {e}"))?)
    }

    pub(super) fn save(&self, path: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).map_err(|e| format!("can't write {}: {e}", path.display()).into())
    }

    /// Returns the counts of such machines.
    pub(super) fn of(&self, machine: &Machine) -> Option<&Counts> {
        let set = self.sets.iter().find(|set| set.machine == *machine)?;
        Some(&set.counts)
    }

    /// Lists the kinds of machines, for people.
    pub(super) fn machines(&self) -> String {
        let machines = self.sets.iter().map(|set| set.machine.to_string());
        machines.collect::<Vec<_>>().join(", and of ")
    }

    /// Takes the counts of a kind of machine in. Removes counts of other compilers, for they are of
    /// earlier code.
    pub(super) fn accept(&mut self, machine: Machine, counts: Counts) {
        let is_kept = |set: &Set| set.machine != machine && set.machine.rustc == machine.rustc;
        self.sets.retain(is_kept);
        self.sets.push(Set { machine, counts });
    }

    /// Returns the first set with atomic instructions, to be shown.
    pub(super) fn shown(&self) -> Option<(&Machine, &Counts)> {
        let is_full = |set: &&Set| set.counts.values().all(|cost| cost.rmws.is_some());
        let set = self.sets.iter().find(is_full)?;
        Some((&set.machine, &set.counts))
    }

    /// Returns the worst verdict on an act's costs. Instructions of libraries decide nothing:
    /// chance decides which threads meet in the allocator, whose calls are counted.
    pub(super) fn verdict(&self, cost: &Cost, before: Option<&Cost>) -> Verdict {
        let Some(before) = before else {
            return Verdict::New;
        };
        let (mut more, mut less) = (Vec::new(), Vec::new());
        let pairs = cost.columns().into_iter().zip(before.columns());
        for (name, pair) in COLUMNS.into_iter().zip(pairs).skip(1) {
            let (count, before) = match pair {
                (Some(count), Some(before)) => (count, before),
                (Some(_), None) => return Verdict::New,
                (None, _) => continue,
            };
            let fraction = before * self.tolerance;
            let slack = if name == "own" {
                fraction
            } else {
                self.slack.max(fraction)
            };
            if count - before > slack {
                more.push(name);
            } else if before - count > slack {
                less.push(name);
            }
        }
        if !more.is_empty() {
            Verdict::More(more)
        } else if !less.is_empty() {
            Verdict::Less(less)
        } else {
            Verdict::Fine
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(rustc: &str, libc: &str) -> Machine {
        let [arch, rustc, libc] = ["pdp11", rustc, libc].map(str::to_owned);
        Machine { arch, rustc, libc }
    }

    fn cost(own: f64, rmws: Option<f64>) -> Cost {
        Cost {
            own,
            rmws,
            ..Cost::default()
        }
    }

    fn committed() -> Committed {
        Committed {
            tolerance: 0.02,
            slack: 0.05,
            sets: Vec::new(),
        }
    }

    #[test]
    fn more_than_the_tolerance_is_more() {
        let before = cost(100.0, Some(2.08));
        let verdict = |own, rmws| committed().verdict(&cost(own, rmws), Some(&before));
        assert_eq!(verdict(97.0, Some(2.08)), Verdict::Less(vec!["own"]));
        assert_eq!(verdict(101.9, Some(2.12)), Verdict::Fine);
        assert_eq!(verdict(102.1, Some(2.08)), Verdict::More(vec!["own"]));
        assert_eq!(verdict(90.0, Some(2.14)), Verdict::More(vec!["RMWs"]));
        // Here they can't be counted.
        assert_eq!(verdict(100.0, None), Verdict::Fine);
        assert_eq!(
            committed().verdict(&before, Some(&cost(100.0, None))),
            Verdict::New
        );
        assert_eq!(committed().verdict(&before, None), Verdict::New);
    }

    #[test]
    fn each_kind_of_machine_has_its_counts_until_the_compiler_changes() {
        let counts = |own| Counts::from([("step".to_owned(), cost(own, None))]);
        let mut committed = committed();
        let [one, two] = ["glibc 1", "glibc 2"].map(|libc| machine("rustc 1", libc));
        for (machine, own) in [(&one, 1.0), (&two, 2.0), (&one, 3.0)] {
            committed.accept(machine.clone(), counts(own));
        }
        assert_eq!(committed.of(&one), Some(&counts(3.0)));
        assert_eq!(committed.of(&two), Some(&counts(2.0)));
        assert_eq!(committed.shown(), None);
        let newer = machine("rustc 2", "glibc 1");
        committed.accept(newer.clone(), counts(4.0));
        assert_eq!((committed.of(&one), committed.of(&two)), (None, None));
        assert_eq!(committed.of(&newer), Some(&counts(4.0)));
    }
}
