//! What has happened in a run.

use ganger_sched::sim::Did;
use std::fmt;

/// Who moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    Worker(usize),
    Monitor,
    Timer,
    /// Somebody who is none of them, at any moment.
    Outside,
    /// A host or a peer that is not to be found for a while.
    Place(&'static str),
}

/// The moves of a run, in order. The same seed gives the same: as text, byte for byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace(Vec<(Actor, Did)>);

impl Trace {
    pub(crate) fn add(&mut self, actor: Actor, did: Did) {
        self.0.push((actor, did));
    }

    /// How many moves there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing has moved.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last so many moves, as text; what is the same several times in a row is one line.
    #[must_use]
    pub fn last(&self, moves: usize) -> String {
        let text = Self(self.0[self.len().saturating_sub(moves)..].to_vec()).to_string();
        let mut folded = String::new();
        for same in text.lines().collect::<Vec<_>>().chunk_by(|a, b| a == b) {
            folded += same[0];
            if same.len() > 1 {
                folded += &format!(" ({} times)", same.len());
            }
            folded.push('\n');
        }
        folded
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (actor, did) in &self.0 {
            match actor {
                Actor::Worker(worker) => write!(f, "worker {worker}: ")?,
                Actor::Monitor => f.write_str("monitor: ")?,
                Actor::Outside => f.write_str("outside: ")?,
                Actor::Place(name) => {
                    writeln!(f, "outside: {name} disappears for a while")?;
                    continue;
                }
                Actor::Timer => {
                    f.write_str("timer\n")?;
                    continue;
                }
            }
            match did {
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
            }?;
            f.write_str("\n")?;
        }
        Ok(())
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
            .for_each(|did| trace.add(Actor::Worker(1), did));
        trace.add(Actor::Timer, Did::Nothing);
        let expected = "worker 1: looks, in vain (2 times)\nworker 1: sleeps\ntimer\n";
        assert_eq!(trace.last(4), expected);
        assert_eq!(trace.to_string().lines().count(), trace.len());
    }
}
