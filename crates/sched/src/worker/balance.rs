//! Balance: a worker that never runs out of processes takes one of another worker that has more.
//!
//! **Problem.** A worker that has work does not steal. Workers that never run out keep what they
//! got when they last did: say 45 and 55 of a hundred processes that always continue, of which the
//! ones then have a fifth more turns than the others; or one and two of three.
//!
//! **Rejected.** To take half of what is too many, at once: they would lie on top of the own
//! processes, before those that have waited longer (G4). To compare with all other workers, or with
//! one that has something: where one of many workers has a process too many, all of them would be
//! after it.
//!
//! **Protocol** (after Rudolph, Slivkin-Allalouf, Upfal: A Simple Load Balancing Scheme for Task
//! Allocation in Parallel Machines, SPAA 1991: pairs at random, each now and then). At a rotation
//! that finds the global queue empty, when the coarse time has gone on by a millisecond since the
//! last such look, one time in [`BALANCE_ODDS`], a worker compares itself with one that is on duty,
//! drawn at random. When that one has more, by one and by a 32nd, it takes the oldest of them and
//! runs it at once; the oldest of its own comes next, as after one from the global queue. So no
//! process is put before another.
//!
//! Where one worker has a process more than another, for they can't have the same, one goes to and
//! fro between them, and all have their share of the time. That is what is drawn for: if both
//! looked in turn, at each rotation, it would always be the same one, which is the oldest of all
//! again when the other looks, and has one step each time.
//!
//! **Cost**: two cache lines of the other worker, every few milliseconds; and where one is taken,
//! what a thief pays for what has not been exposed, which interrupts the program's other threads
//! for about a microsecond.

use super::Worker;
use crate::policy::{BALANCE_INTERVAL, BALANCE_ODDS, BALANCE_SLACK};
use crate::probe::{Probe, Theft};
use crate::runtime::token::Token;

impl Worker<'_> {
    /// The oldest process of another worker that has more, if this is the time to look.
    pub(super) fn balance(&mut self, now: u64) -> Option<Token> {
        let is_time = now.saturating_sub(self.last_balance) >= BALANCE_INTERVAL;
        if !is_time || self.draw("balance", BALANCE_ODDS) > 0 {
            return None;
        }
        self.last_balance = now;
        let victim = self.draw_another()?;
        self.take_from(victim)
    }

    /// Another worker that is on duty.
    fn draw_another(&mut self) -> Option<usize> {
        let slots = self.shared.stealers().len();
        let start = self.draw("partner", slots);
        (start..slots)
            .chain(0..start)
            .find(|&it| it != self.queue.index && self.shared.worker_slots.is_active(it))
    }

    fn take_from(&self, victim: usize) -> Option<Token> {
        let (shared, stealer) = (self.shared, &self.shared.stealers()[victim]);
        // That one's is out of its deque while it runs. The own last one is back by now, if it goes
        // on.
        let theirs = stealer.len() + usize::from(shared.census.turns.on(victim).is_some());
        let ours = self.queue.deque.len();
        if theirs <= ours + ours / BALANCE_SLACK {
            return None;
        }
        let observed = shared.probe.observe(victim);
        // A thief that was faster may have left it with less.
        let token = stealer.steal().success()?;
        shared.probe.stole(self.queue.index, observed, Theft::One);
        self.counters.steals.bump();
        self.counters.stolen.bump();
        Some(token)
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
