//! The committed counts, each set with its kind of machine. Another compiler makes other code, and
//! another C library allocates and copies in another way. So a set is compared with counts of its
//! own kind of machine only.

use super::cost::{Cost, Kind};
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
    /// The tolerance above a committed count of the program's own instructions, as a fraction.
    tolerance: f64,
    /// The same, of all instructions: the allocator's count differs from run to run where threads
    /// meet in it.
    tolerance_with_libraries: f64,
    /// The tolerance above any other committed count, unless the first fraction of it is more.
    slack: f64,
    sets: Vec<Set>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    machine: Machine,
    counts: Counts,
}

/// A count compared with the committed count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    More,
    New,
    Less,
    Fine,
}

impl Verdict {
    /// Returns the text behind the act, if any.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::More => ": MORE than the tolerance allows",
            Self::New => ": NOT committed yet",
            Self::Less => ": less; commit it with --accept",
            Self::Fine => "",
        }
    }

    pub(super) fn is_worse(self) -> bool {
        matches!(self, Self::More | Self::New)
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

    /// Takes new counts in; acts that have none keep theirs. Removes counts of other compilers, for
    /// they are of earlier code.
    pub(super) fn accept(&mut self, machine: Machine, new: Counts) {
        let mut counts = self.of(&machine).cloned().unwrap_or_default();
        counts.extend(new);
        let is_kept = |set: &Set| set.machine != machine && set.machine.rustc == machine.rustc;
        self.sets.retain(is_kept);
        self.sets.push(Set { machine, counts });
    }

    /// Returns the first set with atomic instructions, to be shown.
    pub(super) fn shown(&self) -> Option<(&Machine, &Counts)> {
        let is_full = |set: &&Set| {
            set.counts
                .values()
                .all(|cost| cost.contains_key(&Kind::Rmws))
        };
        let set = self.sets.iter().find(is_full)?;
        Some((&set.machine, &set.counts))
    }

    /// Forgets the acts of this machine that `is_there` does not know.
    pub(super) fn forget_others(&mut self, machine: &Machine, is_there: impl Fn(&str) -> bool) {
        let sets = self.sets.iter_mut();
        for set in sets.filter(|set| set.machine == *machine) {
            set.counts.retain(|act, _| is_there(act));
        }
    }

    /// Returns the worst verdict on an act's costs, and the kinds of cost with it.
    pub(super) fn verdict(&self, cost: &Cost, before: Option<&Cost>) -> (Verdict, Vec<Kind>) {
        let Some(before) = before else {
            return (Verdict::New, Vec::new());
        };
        let of = |kind: Kind| match (cost.get(&kind), before.get(&kind)) {
            (Some(&count), Some(&before)) => self.verdict_of(kind, count, before),
            (Some(_), None) => Verdict::New,
            (None, _) => Verdict::Fine,
        };
        let verdicts = Kind::ALL.map(|kind| (of(kind), kind));
        let worst = [Verdict::More, Verdict::New, Verdict::Less]
            .into_iter()
            .find(|&worst| verdicts.iter().any(|&(verdict, _)| verdict == worst));
        let worst = worst.unwrap_or(Verdict::Fine);
        let kinds = verdicts
            .into_iter()
            .filter(|&(verdict, _)| verdict == worst);
        (worst, kinds.map(|(_, kind)| kind).collect())
    }

    fn verdict_of(&self, kind: Kind, count: f64, before: f64) -> Verdict {
        let slack = match kind {
            Kind::Own => before * self.tolerance,
            Kind::Instructions => before * self.tolerance_with_libraries,
            // Chance decides which threads meet in the allocator.
            Kind::LibraryRmws => return Verdict::Fine,
            // Time decides in the mutex which of the two tasks is next.
            _ => self.slack.max(before * self.tolerance),
        };
        match count - before {
            more if more > slack => Verdict::More,
            less if less < -slack => Verdict::Less,
            _ => Verdict::Fine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(rustc: &str, libc: &str) -> Machine {
        Machine {
            arch: "pdp11".to_owned(),
            rustc: rustc.to_owned(),
            libc: libc.to_owned(),
        }
    }

    fn cost(instructions: f64, rmws: f64) -> Cost {
        Cost::from([(Kind::Own, instructions), (Kind::Rmws, rmws)])
    }

    fn counts(step: f64) -> Counts {
        Counts::from([("step".to_owned(), cost(step, 0.0))])
    }

    fn committed() -> Committed {
        Committed {
            tolerance: 0.02,
            tolerance_with_libraries: 0.1,
            slack: 0.05,
            sets: Vec::new(),
        }
    }

    #[test]
    fn more_than_the_tolerance_is_more() {
        let verdict = |instructions: f64| {
            let before = cost(100.0, 0.0);
            committed()
                .verdict(&cost(instructions, 0.0), Some(&before))
                .0
        };
        let verdicts = [97.0, 99.0, 101.9, 102.1].map(verdict);
        let expected = [Verdict::Less, Verdict::Fine, Verdict::Fine, Verdict::More];
        assert_eq!(verdicts, expected);
        assert_eq!(verdicts.map(Verdict::is_worse), [false, false, false, true]);
        assert!(Verdict::New.is_worse());
        assert_eq!(committed().verdict(&cost(1.0, 0.0), None).0, Verdict::New);
    }

    #[test]
    fn a_read_modify_write_more_is_more_however_few_instructions_there_are() {
        let verdict =
            |rmws: f64, before: &Cost| committed().verdict(&cost(90.0, rmws), Some(before));
        let before = cost(100.0, 2.08);
        assert_eq!(verdict(2.12, &before), (Verdict::Less, vec![Kind::Own]));
        assert_eq!(verdict(2.14, &before), (Verdict::More, vec![Kind::Rmws]));
        let uncounted = Cost::from([(Kind::Own, 90.0)]);
        assert_eq!(verdict(2.0, &uncounted), (Verdict::New, vec![Kind::Rmws]));
        // Here they can't be counted.
        let fine = committed().verdict(&uncounted, Some(&cost(90.0, 2.0)));
        assert_eq!(fine.0, Verdict::Fine);
    }

    #[test]
    fn the_allocator_may_take_more_than_the_program_may() {
        let of = |all: f64| Cost::from([(Kind::Instructions, all)]);
        let verdicts = [109.0, 111.0].map(|all| committed().verdict(&of(all), Some(&of(100.0))).0);
        assert_eq!(verdicts, [Verdict::Fine, Verdict::More]);
    }

    #[test]
    fn what_is_left_to_chance_is_not_compared() {
        let of = |rmws: f64| Cost::from([(Kind::LibraryRmws, rmws)]);
        assert_eq!(
            committed().verdict(&of(90.0), Some(&of(50.0))).0,
            Verdict::Fine
        );
    }

    #[test]
    fn the_set_that_is_shown_has_atomic_instructions() {
        let mut committed = committed();
        assert_eq!(committed.shown(), None);
        let bare = Cost::from([(Kind::Instructions, 7.0)]);
        let bare = Counts::from([("step".to_owned(), bare)]);
        committed.accept(machine("rustc 1", "glibc 1"), bare);
        assert_eq!(committed.shown(), None);
        let full = machine("rustc 1", "glibc 2");
        committed.accept(full.clone(), counts(7.0));
        assert_eq!(committed.shown(), Some((&full, &counts(7.0))));
    }

    #[test]
    fn each_kind_of_machine_has_its_counts_until_the_compiler_changes() {
        let mut committed = committed();
        let [one, two] = ["glibc 1", "glibc 2"].map(|libc| machine("rustc 1", libc));
        committed.accept(one.clone(), counts(1.0));
        committed.accept(two.clone(), counts(2.0));
        committed.accept(one.clone(), counts(3.0));
        assert_eq!(committed.of(&one), Some(&counts(3.0)));
        assert_eq!(committed.of(&two), Some(&counts(2.0)));
        assert_eq!(
            committed.machines(),
            "rustc 1 on pdp11 with glibc 2, and of rustc 1 on pdp11 with glibc 1"
        );
        let more = Counts::from([("send".to_owned(), cost(5.0, 2.0))]);
        committed.accept(one.clone(), more);
        assert_eq!(committed.of(&one).unwrap().len(), 2);
        committed.forget_others(&one, |act| act == "step");
        assert_eq!(committed.of(&one), Some(&counts(3.0)));
        let newer = machine("rustc 2", "glibc 1");
        assert_eq!(committed.of(&newer), None);
        committed.accept(newer.clone(), counts(4.0));
        assert_eq!((committed.of(&one), committed.of(&two)), (None, None));
        assert_eq!(committed.of(&newer), Some(&counts(4.0)));
    }

    #[test]
    fn this_machine_has_a_compiler_of_the_toolchain() {
        let here = Machine::here().unwrap();
        assert!(here.rustc.starts_with("rustc "), "{here}");
        assert_eq!(here.arch, ARCH);
    }
}
