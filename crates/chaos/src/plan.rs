//! The events of a run, drawn from a seed.

use crate::faults::{Faults, Way};
use fastrand::Rng;
use std::fmt;
use std::time::Duration;

/// An event of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Faults of a way through the proxy of a node.
    Faults(usize, Way, Faults),
    /// Ends the faults of a node's proxy.
    Calm(usize),
    /// Ends all connections of a node's proxy.
    Cut(usize),
    /// Breaks the next connection after this number of bytes.
    CutAfter(usize, usize),
    /// Resets all connections of a node's proxy.
    Reset(usize),
    /// Ends a way of all connections.
    HalfClose(usize, Way),
    /// Flips a bit.
    Flip(usize, Way),
    /// Refuses new connections, and ends the open ones.
    Refuse(usize),
    /// Stops a node's program (`SIGSTOP`), and lets the program go on after this time.
    Stop(usize, Duration),
    /// Kills a node's program (`SIGKILL`), and starts the program again after this time.
    Kill(usize, Duration),
    /// Stops the broker, if the run has a broker, and lets the broker go on after this time.
    StopBroker(Duration),
    /// Kills the broker, if the run has a broker, and starts the broker again after this time.
    KillBroker(Duration),
}

/// The events of a run, endless. The same seed has the same events.
#[derive(Debug, Clone)]
pub struct Plan {
    random: Rng,
    nodes: usize,
    dead: Duration,
    has_broker: bool,
}

impl Plan {
    /// Creates a plan for this number of nodes, whose sessions end after `dead`.
    #[must_use]
    pub fn draw(seed: u64, nodes: usize, dead: Duration, has_broker: bool) -> Self {
        Self {
            random: Rng::with_seed(seed),
            nodes,
            dead,
            has_broker,
        }
    }

    /// Draws a time from 20 ms to a share of `dead`, short times more often.
    fn pause(&mut self, most: f64) -> Duration {
        let share = self.random.f64().powi(3) * most;
        Duration::from_millis(20) + self.dead.mul_f64(share)
    }

    fn way(&mut self) -> Way {
        Way::BOTH[usize::from(self.random.bool())]
    }

    fn faulty(&mut self) -> Faults {
        let mut faults = Faults::default();
        match self.random.u8(0..6) {
            0 => {
                faults.delay = self.pause(0.1);
                faults.jitter = self.pause(0.1);
            }
            1 => faults.rate = Some(self.random.u64(20_000..2_000_000)),
            2 => faults.piece = Some(self.random.usize(1..200)),
            3 => faults.vanishes = true,
            4 => faults.holds = true,
            _ => {
                faults.piece = Some(self.random.usize(1..2000));
                faults.jitter = self.pause(0.02);
            }
        }
        faults
    }
}

impl Iterator for Plan {
    /// The time since the last event, and the event.
    type Item = (Duration, Action);

    fn next(&mut self) -> Option<Self::Item> {
        let node = self.random.usize(0..self.nodes);
        let gap = Duration::from_millis(self.random.u64(0..300));
        let action = match self.random.u8(0..32) {
            0..=9 => Action::Faults(node, self.way(), self.faulty()),
            10..=15 => Action::Calm(node),
            16 | 17 => Action::Cut(node),
            18 | 19 => Action::CutAfter(node, self.random.usize(1..20_000)),
            20 | 21 => Action::Reset(node),
            22 => Action::HalfClose(node, self.way()),
            23 | 24 => Action::Flip(node, self.way()),
            25 => Action::Refuse(node),
            26 | 27 => Action::Stop(node, self.pause(1.6)),
            28 => Action::Kill(node, self.pause(1.2)),
            29 if self.has_broker => Action::StopBroker(self.pause(1.2)),
            30 if self.has_broker => Action::KillBroker(self.pause(1.2)),
            _ => Action::Calm(node),
        };
        Some((gap, action))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_plan_and_has_all_events() {
        let plan = |seed| Plan::draw(seed, 3, Duration::from_secs(3), true).take(500);
        assert!(plan(7).eq(plan(7)));
        assert!(!plan(7).eq(plan(8)));
        let kinds = plan(7).map(|(_, action)| std::mem::discriminant(&action));
        assert_eq!(kinds.collect::<std::collections::HashSet<_>>().len(), 12);
        let is_quiet = plan(7).any(|(gap, _)| gap > Duration::from_millis(300));
        assert!(!is_quiet);
    }
}
