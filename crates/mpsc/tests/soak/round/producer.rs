//! A producer of a round: all ways of sending, until it has sent everything or is refused.

use super::outlet::Outlet;
use super::plan::{self, Give};
use super::tally::Tally;
use super::{Ends, Round};
use fastrand::Rng;
use ganger_mpsc::TrySendError;
use ganger_soak::chance::{one_in, pick};
use ganger_soak::{Doing, Load};
use std::mem;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) const DOES: &[&str] = &[
    "waiting for the start",
    "in send",
    "in send_all",
    "in try_send or send_timeout",
    "cloning or dropping a sender",
    "yielding or sleeping",
    "changing the cache of nodes",
    "done",
];

pub(super) struct Producer<'r, 'a, L> {
    round: &'r Round<'a>,
    plan: &'r plan::Producer,
    index: usize,
    outlet: Outlet<'r, L>,
    random: Rng,
    doing: &'r Doing,
    made: usize,
    /// An item returned by a full channel. The producer sends this item first.
    returned: Option<L>,
    refusals: usize,
    tally: Tally,
}

impl<'r, 'a, L: Load<'a>> Producer<'r, 'a, L> {
    pub(super) fn new(
        round: &'r Round<'a>,
        index: usize,
        outlet: Outlet<'r, L>,
        doing: &'r Doing,
    ) -> Self {
        let plan = &round.plan.producers[index];
        Self {
            round,
            plan,
            index,
            outlet,
            random: Rng::with_seed(plan.seed),
            doing,
            made: 0,
            returned: None,
            refusals: 0,
            tally: Tally::default(),
        }
    }

    pub(super) fn run(mut self) -> Tally {
        let _ends = Ends(self.round);
        self.round.start.wait();
        self = super::in_legs(self, Self::leg);
        if let Some(item) = self.returned.take() {
            self.end(item);
        }
        // Ordering: Release pairs with the Acquire in `Round::all_sent`: all sends happen before.
        self.round.sending.fetch_sub(1, Ordering::Release);
        self.doing.begins(7);
        self.tally
    }

    /// Sends for a while, in a single thread. Returns whether the producer has more to do.
    fn leg(&mut self) -> bool {
        for _ in 0..self.plan.leg {
            let is_done = self.made == self.round.plan.items && self.returned.is_none();
            let gives_up = one_in(&mut self.random, self.plan.leaves);
            let is_refused = self.refusals >= self.plan.refusals;
            if is_done || gives_up || is_refused || self.round.is_over() {
                return false;
            }
            self.give();
            if one_in(&mut self.random, self.plan.clones) {
                self.doing.begins(4);
                let clone = self.outlet.clone();
                if self.random.bool() {
                    drop(mem::replace(&mut self.outlet, clone));
                }
            }
            self.doing.begins(5);
            self.round.pause(&mut self.random);
            self.doing.begins(6);
            self.round.disturb(&mut self.random);
        }
        true
    }

    fn give(&mut self) {
        match *pick(&mut self.random, &self.plan.ops) {
            Give::SendAll if self.returned.is_none() => {
                self.doing.begins(2);
                self.send_all();
            }
            Give::Send | Give::SendAll => {
                let item = self.next();
                self.doing.begins(1);
                match self.outlet.send(item) {
                    Ok(()) => self.check_sent(),
                    Err(item) => self.refused(item),
                }
            }
            give @ (Give::TrySend | Give::SendTimeout) => {
                let item = self.next();
                self.doing.begins(3);
                let timeout = Duration::from_micros(self.random.u64(0..200));
                let sent = match give {
                    Give::SendTimeout => self.outlet.send_timeout(item, timeout),
                    _ => self.outlet.try_send(item),
                };
                match sent {
                    Ok(()) => self.check_sent(),
                    Err(TrySendError::Disconnected(item)) => self.refused(item),
                    Err(TrySendError::Full(item)) => {
                        self.check_returned(&item, self.made - 1);
                        self.returned = Some(item);
                        std::thread::yield_now();
                    }
                }
            }
        }
    }

    fn next(&mut self) -> L {
        self.returned
            .take()
            .unwrap_or_else(|| self.make(1).next().expect("one item"))
    }

    /// Makes the next `count` items, each on demand.
    fn make(&mut self, count: usize) -> impl Iterator<Item = L> + use<'r, 'a, L> {
        let (round, index) = (self.round, self.index);
        let numbers = self.made..self.made + count;
        self.made = numbers.end;
        self.tally.made = self.made;
        // Ordering: Relaxed, because it is read after the threads have been joined.
        round.made[index].store(self.made, Ordering::Relaxed);
        numbers.map(move |number| L::new(round.ledger, index * round.plan.items + number))
    }

    fn send_all(&mut self) {
        let left = self.round.plan.items - self.made;
        let (first, count) = (self.made, self.random.usize(0..=self.plan.burst).min(left));
        let items = self.make(count);
        let Err(batch) = self.outlet.send_all(items) else {
            if count > 0 {
                self.check_sent();
            }
            return;
        };
        // On a bounded channel these are several sends, and some may succeed before the end.
        let refused = batch.len();
        let is_one = !matches!(self.outlet, Outlet::Bounded(_));
        if refused == 0 || refused > count || is_one && refused < count {
            self.round.fault(format!(
                "{refused} refused of {count} that were sent at once"
            ));
        }
        for (number, item) in (first + count.saturating_sub(refused)..).zip(batch) {
            self.check_returned(&item, number);
            self.refused_one(item);
        }
        self.refusals += 1;
    }

    fn refused(&mut self, item: L) {
        self.check_returned(&item, self.made - 1);
        self.refused_one(item);
        self.refusals += 1;
    }

    fn refused_one(&mut self, item: L) {
        if !self.outlet.is_closed() {
            self.round.fault("refused by what is not closed");
        }
        self.end(item);
    }

    /// Ends a refused item.
    fn end(&mut self, item: L) {
        item.end(self.round.ledger);
        self.tally.refused += 1;
    }

    fn check_sent(&self) {
        if self.refusals > 0 {
            self.round.fault("sent after something was refused");
        }
    }

    fn check_returned(&self, item: &L, number: usize) {
        let expected = self.index * self.round.plan.items + number;
        if item.id().is_some_and(|id| id != expected) {
            let what = format!("item {:?} came back instead of {expected}", item.id());
            self.round.fault(what);
        }
    }
}
