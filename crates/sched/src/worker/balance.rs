//! Balance: a worker that never runs out of processes takes a process of a worker with more.
//!
//! **Problem.** A worker with work does not steal. Workers that never run out keep the processes of
//! their last theft: say 45 and 55 of a hundred endless processes. Then each of the 45 has a fifth
//! more turns than each of the 55.
//!
//! **Rejected.** To take half of the surplus at once: they would lie on top of the own processes,
//! which have waited longer (G4). To compare with all workers: if a single worker has a process too
//! many, all others would try to take it.
//!
//! **Protocol** (after Rudolph, Slivkin-Allalouf, Upfal: A Simple Load Balancing Scheme for Task
//! Allocation in Parallel Machines, SPAA 1991: random pairs, now and then). At a rotation with an
//! empty global queue, at most once in [`BALANCE_INTERVAL`], and then with a chance of 1 in
//! [`BALANCE_ODDS`], a worker compares itself with a random worker on duty. If the other has more
//! by a process and by a [`BALANCE_SLACK`]th, the worker takes its oldest process and runs it at
//! once. The oldest of its own comes next, as after a process from the global queue. So no process
//! is put before another.
//!
//! With an odd number of processes, a process alternates between two workers. The draw is random,
//! so it is not always the same process.
//!
//! **Cost**: two cache lines of the other worker, every few milliseconds. A theft of a process not
//! exposed by its owner interrupts the program's other threads for about a microsecond.

use super::Worker;
use crate::policy::{BALANCE_INTERVAL, BALANCE_ODDS, BALANCE_SLACK};
use crate::probe::{From, Probe, Theft};
use crate::runtime::token::Token;

impl Worker<'_> {
    /// Takes the oldest process of a worker with more, if a comparison is due.
    pub(super) fn balance(&mut self, now: u64) -> Option<Token> {
        let is_time = now.saturating_sub(self.last_balance) >= BALANCE_INTERVAL;
        if !is_time || self.draw("balance", BALANCE_ODDS) > 0 {
            return None;
        }
        self.last_balance = now;
        let victim = self.draw_another()?;
        self.take_from(victim)
    }

    /// Draws a random other worker on duty.
    fn draw_another(&mut self) -> Option<usize> {
        let slots = self.shared.stealers().len();
        let start = self.draw("partner", slots);
        (start..slots)
            .chain(0..start)
            .find(|&it| it != self.queue.index && self.shared.worker_slots.is_active(it))
    }

    fn take_from(&self, victim: usize) -> Option<Token> {
        let (shared, stealer) = (self.shared, &self.shared.stealers()[victim]);
        // Its running process is not in its deque. The own last process, if it continues, is.
        let theirs = stealer.len() + usize::from(shared.census.turns.on(victim).is_some());
        let ours = self.queue.deque.len();
        if theirs <= ours + ours / BALANCE_SLACK {
            return None;
        }
        let observed = shared.probe.observe(victim);
        // Another thief may have been faster.
        let token = stealer.steal().success()?;
        let (probe, own) = (&shared.probe, self.queue.index);
        probe.stole(own, (victim, 1), observed, Theft::One);
        probe.taking(own, From::Stolen);
        self.counters.steals.bump();
        self.counters.stolen.bump();
        Some(token)
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
