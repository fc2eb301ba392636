//! Balance: a worker that never runs out of processes takes one of another worker that has more.
//!
//! **Problem.** Who has work does not steal. Workers that never run out keep what they got when they last did:
//! say 45 and 55 of a hundred processes that always continue, of which the ones then have a fifth more turns than
//! the others; or one and two of three.
//!
//! **Rejected.** To take half of what is too many, at once: they would lie on top of the own processes, before
//! those that have waited longer (G4). To compare with all other workers: each look takes a line of another's
//! deque from the cache of its owner.
//!
//! **Protocol** (after Rudolph, Slivkin-Allalouf, Upfal: A Simple Load Balancing Scheme for Task Allocation in
//! Parallel Machines, SPAA 1991: pairs at random, each now and then). At a rotation that finds the global
//! queue empty, a millisecond or more after the last such look, a worker compares itself with one other,
//! chosen at random of those in whose deque something is. When that one has more, by one and by a 32nd, it takes the oldest of them and runs it at
//! once; the oldest of its own comes next, as after one from the global queue. So nobody is put before anybody
//! else.
//!
//! Where one worker has one process more than another, for they can't have the same, it goes to and fro
//! between them, and each process has its share of the time.
//!
//! **Cost**: two loads of other workers' cache lines a millisecond; and where one is taken, what a thief
//! pays for what has not been exposed, which interrupts the other worker for about a microsecond.

use super::Worker;
use crate::token::Token;

/// So many nanoseconds at least are between two looks.
const INTERVAL: u64 = 1_000_000;

/// By this part of its own a worker lets others have more.
const SLACK: usize = 32;

impl Worker<'_> {
    /// The oldest process of another worker that has more, if it is time to look.
    pub(super) fn balance(&mut self, now: u64) -> Option<Token> {
        if now.saturating_sub(self.last_balance) < INTERVAL {
            return None;
        }
        self.last_balance = now;
        let (shared, own) = (self.shared, self.queue.index);
        let stealers = shared.stealers();
        let start = self.first_victim(stealers.len());
        // Spares that are off duty have nothing.
        let victim = (start..stealers.len())
            .chain(0..start)
            .find(|&it| it != own && !stealers[it].is_empty())?;
        // That one's is out of its deque while it runs. The own last one is back by now, if it goes on.
        let theirs = stealers[victim].len() + usize::from(shared.turns.on(victim).is_some());
        let ours = self.queue.deque.len();
        if theirs <= ours + ours / SLACK {
            return None;
        }
        let glimpse = shared.check.glimpse(victim);
        // Who was faster may have left it with less.
        let token = stealers[victim].steal().success()?;
        shared.check.balance(own, glimpse);
        self.counters.steals.bump();
        self.counters.stolen.bump();
        Some(token)
    }
}
