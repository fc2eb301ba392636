//! The committed counts, each set with its kind of machine. Another compiler makes other code, and
//! another C library allocates and copies in another way. So a set is compared with counts of its
//! own kind of machine only.

use crate::Failure;
use crate::root::root;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::env::consts::{ARCH, OS};
use std::fs;
use std::process::Command;

/// The file.
const PATH: &str = "benches/instructions.json";

/// The counts: instructions of all code, instructions of the program itself, its read-modify-writes
/// and fences, where the listing tells them from other instructions, and allocations.
pub(super) const COLUMNS: [&str; 5] = ["instructions", "own", "rmws", "fences", "allocations"];

/// The cost of a round of an act, by column.
pub(super) type Cost = BTreeMap<String, f64>;

/// The costs of each act.
pub(super) type Counts = BTreeMap<String, Cost>;

/// The properties of a machine on which a count depends: `arch`, `rustc` and `libc`.
pub(super) type Machine = BTreeMap<String, String>;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Committed {
    /// The tolerance above a committed count, as a fraction.
    tolerance: f64,
    /// The tolerance above a count other than of instructions, unless the fraction is more.
    slack: f64,
    sets: Vec<Set>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    machine: Machine,
    counts: Counts,
}

/// Returns this machine, with the compiler of the workspace's folder.
pub(super) fn here() -> Result<Machine, Failure> {
    // A name and a version, where the command says them.
    let first_words = |program: &str, arg: &str| {
        let output = Command::new(program).arg(arg).current_dir(root()).output();
        let text = String::from_utf8(output.ok()?.stdout).ok()?;
        let mut words = text.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    let rustc = first_words("rustc", "--version").ok_or("can't run `rustc --version`")?;
    // Elsewhere the library comes with the system.
    let libc = first_words("getconf", "GNU_LIBC_VERSION");
    let libc = libc.unwrap_or_else(|| format!("{OS}'s libc"));
    let parts = [("arch", ARCH.to_owned()), ("rustc", rustc), ("libc", libc)];
    Ok(parts.map(|(key, value)| (key.to_owned(), value)).into())
}

/// Returns the name of a kind of machine for people.
pub(super) fn called(machine: &Machine) -> String {
    let [rustc, arch, libc] = ["rustc", "arch", "libc"].map(|key| &*machine[key]);
    format!("{rustc} on {arch} with {libc}")
}

impl Committed {
    pub(super) fn load() -> Result<Self, Failure> {
        let text = fs::read_to_string(root().join(PATH))?;
        Ok(serde_json::from_str(&text).map_err(|error| format!("{PATH}: {error}"))?)
    }

    pub(super) fn save(&self) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        Ok(fs::write(root().join(PATH), text)?)
    }

    /// Returns the counts of such machines.
    pub(super) fn of(&self, machine: &Machine) -> Option<&Counts> {
        let set = self.sets.iter().find(|set| set.machine == *machine)?;
        Some(&set.counts)
    }

    /// Takes the counts of a kind of machine in. Removes counts of other compilers, for they are of
    /// earlier code.
    pub(super) fn accept(&mut self, machine: Machine, counts: Counts) {
        let rustc = &machine["rustc"];
        self.sets
            .retain(|set| set.machine != machine && set.machine["rustc"] == *rustc);
        self.sets.push(Set { machine, counts });
    }

    /// Returns the first set with atomic instructions, to be shown.
    pub(super) fn shown(&self) -> Option<(&Machine, &Counts)> {
        let is_full = |set: &&Set| set.counts.values().all(|cost| cost.contains_key("rmws"));
        let set = self.sets.iter().find(is_full)?;
        Some((&set.machine, &set.counts))
    }

    /// Returns the worst verdict on an act's costs, if not all are as committed, and whether it is
    /// a fault. Instructions of libraries decide nothing: chance decides which threads meet in the
    /// allocator, whose calls are counted.
    pub(super) fn verdict(&self, cost: &Cost, before: Option<&Cost>) -> Option<(bool, String)> {
        let new = Some((true, "NOT committed yet".to_owned()));
        let Some(before) = before else { return new };
        let (mut more, mut less) = (Vec::new(), Vec::new());
        for name in &COLUMNS[1..] {
            let (count, before) = match (cost.get(*name), before.get(*name)) {
                (Some(count), Some(before)) => (count, before),
                (Some(_), None) => return new,
                (None, _) => continue,
            };
            let slack = if *name == "own" { 0.0 } else { self.slack };
            let slack = slack.max(before * self.tolerance);
            if count - before > slack {
                more.push(*name);
            } else if before - count > slack {
                less.push(*name);
            }
        }
        let is_more = !more.is_empty();
        let (columns, what) = match is_more {
            true => (more, "MORE than is tolerated"),
            false => (less, "less; --accept commits it"),
        };
        let is_any = !columns.is_empty();
        is_any.then(|| (is_more, format!("{}: {what}", columns.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(own: f64, rmws: Option<f64>) -> Cost {
        let rmws = rmws.map(|rmws| ("rmws".to_owned(), rmws));
        [("own".to_owned(), own)].into_iter().chain(rmws).collect()
    }

    #[test]
    fn more_than_the_tolerance_is_more() {
        let mut committed = Committed::default();
        (committed.tolerance, committed.slack) = (0.02, 0.05);
        let before = Some(2.08);
        for (own, rmws, before, expected) in [
            (97.0, before, before, "own: less; --accept commits it"),
            (101.9, Some(2.12), before, ""),
            (102.1, before, before, "own: MORE than is tolerated"),
            (90.0, Some(2.14), before, "rmws: MORE than is tolerated"),
            // Here they can't be counted.
            (100.0, None, before, ""),
            (100.0, Some(2.0), None, "NOT committed yet"),
        ] {
            let verdict = committed.verdict(&cost(own, rmws), Some(&cost(100.0, before)));
            assert_eq!(verdict.unwrap_or_default().1, expected);
        }
        assert!(committed.verdict(&cost(1.0, None), None).is_some());
    }

    #[test]
    fn each_kind_of_machine_has_its_counts_until_the_compiler_changes() {
        let machine = |rustc: &str, libc: &str| {
            let parts = [("rustc", rustc), ("libc", libc)];
            Machine::from(parts.map(|(key, value)| (key.to_owned(), value.to_owned())))
        };
        let counts = |own| Counts::from([("step".to_owned(), cost(own, None))]);
        let mut committed = Committed::default();
        let [one, two, newer] = [machine("1", "1"), machine("1", "2"), machine("2", "1")];
        committed.accept(one.clone(), counts(1.0));
        committed.accept(two, counts(2.0));
        committed.accept(one.clone(), counts(3.0));
        assert_eq!(committed.of(&one), Some(&counts(3.0)));
        assert_eq!(committed.sets.len(), 2);
        committed.accept(newer, counts(4.0));
        assert_eq!((committed.sets.len(), committed.of(&one)), (1, None));
    }
}
