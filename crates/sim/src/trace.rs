//! The moves of a run.

use ganger_sched::sim::{Did, Given, Note};
use std::fmt;

/// The actor that moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    Worker(usize),
    Monitor,
    Timer,
    /// What acts from outside of the scheduler, at any moment.
    Outside,
}

/// The moves of a run, in order, each with its notes: faults, the events of a step, the commands
/// that it yields, the ends of processes.
///
/// The same seed gives the same trace: as text, byte for byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace(Vec<Entry>);

/// A move, or something that happens between two moves.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    actor: Actor,
    did: Did,
    /// What has happened in it, in order.
    notes: Vec<Note>,
}

impl Trace {
    pub(crate) fn add(&mut self, actor: Actor, did: Did, notes: Vec<Note>) {
        self.0.push(Entry { actor, did, notes });
    }

    /// Adds what has happened between two moves.
    pub(crate) fn add_between(&mut self, notes: Vec<Note>) {
        for note in notes {
            match note {
                Note::Outside(did) => self.add(Actor::Outside, did, Vec::new()),
                note => self.add(Actor::Outside, Did::Nothing, vec![note]),
            }
        }
    }

    /// How many entries there are: moves, and what has happened between them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last `moves` entries as text; equal lines in a row become one line.
    #[must_use]
    pub fn last(&self, moves: usize) -> String {
        let last = Self(self.0[self.len().saturating_sub(moves)..].to_vec());
        last.folded().concat()
    }

    /// The last `lines` lines, where equal lines in a row become one line.
    pub(crate) fn last_lines(&self, lines: usize) -> String {
        let folded = self.folded();
        folded[folded.len().saturating_sub(lines)..].concat()
    }

    fn folded(&self) -> Vec<String> {
        let text = self.to_string();
        let lines: Vec<_> = text.lines().collect();
        let fold = |same: &[&str]| match same.len() {
            1 => format!("{}\n", same[0]),
            times => format!("{} ({times} times)\n", same[0]),
        };
        lines.chunk_by(|a, b| a == b).map(fold).collect()
    }

    /// The lines of all faults, and of all acts from outside.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let text = self.to_string();
        let lines = text.lines().map(str::trim_start);
        let is_wrong = |line: &&str| line.starts_with("fault: ") || line.starts_with("outside: ");
        lines.filter(is_wrong).map(str::to_owned).collect()
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|entry| entry.fmt(f))
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut notes = self.notes.iter();
        match self.actor {
            Actor::Worker(worker) => write!(f, "worker {worker}: {}", Move(self.did))?,
            Actor::Monitor => write!(f, "monitor: {}", Move(self.did))?,
            Actor::Outside if self.did != Did::Nothing => write!(f, "outside: {}", Move(self.did))?,
            Actor::Outside => {
                for note in notes {
                    writeln!(f, "{}", Happens(note))?;
                }
                return Ok(());
            }
            Actor::Timer => f.write_str("timer")?,
        }
        if let (Did::Ran(_), Some(Note::Steps(method, given))) = (self.did, self.notes.first()) {
            notes.next();
            write!(f, " ({method})")?;
            write_given(f, given)?;
        }
        f.write_str("\n")?;
        for note in notes {
            writeln!(f, "  {}", Happens(note))?;
        }
        Ok(())
    }
}

fn write_given(f: &mut fmt::Formatter<'_>, given: &Given) -> fmt::Result {
    match given.to_string().as_str() {
        "" => Ok(()),
        given => write!(f, ", {given}"),
    }
}

/// A note, as text.
struct Happens<'a>(&'a Note);

impl fmt::Display for Happens<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Note::Outside(did) => write!(f, "outside: {}", Move(*did)),
            Note::Steps(_, given) => {
                f.write_str("steps again")?;
                write_given(f, given)
            }
            Note::Yields(command, tag) => write!(f, "yields command {command} (tag {tag})"),
            Note::Told(text) => f.write_str(text),
            other => write!(f, "{other:?}"),
        }
    }
}

/// A move, as text.
struct Move(Did);

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Did::Looked => f.write_str("looks, in vain"),
            Did::Found(pid) => write!(f, "finds {pid}"),
            Did::TookUp(pid) => write!(f, "takes {pid} up"),
            Did::Ran(pid) => write!(f, "runs {pid}"),
            Did::Announced => f.write_str("says that it sleeps"),
            Did::Withdrew => f.write_str("does not sleep after all"),
            Did::Blocked(pid) => write!(f, "blocks in a step of {pid}"),
            Did::StoodDown => f.write_str("stands down"),
            Did::CameBack => f.write_str("is on duty again"),
            Did::Retired => f.write_str("ends, since nobody has needed it"),
            Did::FellAsleep => f.write_str("sleeps"),
            Did::Woke => f.write_str("wakes"),
            Did::Left => f.write_str("leaves"),
            Did::Watched => f.write_str("looks"),
            Did::Dozed => f.write_str("sleeps"),
            Did::Roused => f.write_str("wakes"),
            Did::Terminated(pid) => write!(f, "terminates {pid}"),
            Did::Cancelled(pid) => write!(f, "cancels {pid}"),
            Did::Upgraded(pid) => write!(f, "asks for an upgrade of {pid}"),
            Did::Acted => f.write_str("acts"),
            Did::WokeInVain => f.write_str("wakes a worker in vain"),
            Did::Stopped => f.write_str("a shutdown begins"),
            Did::Forced => f.write_str("the deadline of the shutdown passes"),
            other => write!(f, "{other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_several_times_is_one_line() {
        let mut trace = Trace::default();
        let moves = [
            Did::Woke,
            Did::Looked,
            Did::Looked,
            Did::Looked,
            Did::FellAsleep,
        ];
        moves
            .into_iter()
            .for_each(|did| trace.add(Actor::Worker(1), did, Vec::new()));
        trace.add(Actor::Timer, Did::Nothing, Vec::new());
        let expected = "worker 1: looks, in vain (2 times)\nworker 1: sleeps\ntimer\n";
        assert_eq!(trace.last(4), expected);
        let expected = "worker 1: looks, in vain (3 times)\nworker 1: sleeps\ntimer\n";
        assert_eq!(trace.last_lines(3), expected);
        assert_eq!(trace.to_string().lines().count(), trace.len());
    }
}
