//! Where a worker looks for a process: rung by rung, until it finds one.
//!
//! **Where it looks**, in this order: the urgent lane (processes that have system events), up to
//! eight times before it is passed over once; the lane of arrivals (processes that a timer has
//! woken), up to 256 times, or for a millisecond, before it is passed over once; its own deque,
//! youngest first (a process that a step has just woken finds its data in the cache); the global
//! queue (one to run, some more for its deque); the deques of others, of which it takes the older
//! half. **Rotation**: at every 127th pick that is not from a lane, earlier where steps are long
//! (`worker/rotation.rs`), and
//! at the first such pick after 10 ms without one, it looks at the global queue first and takes the
//! oldest of its own deque next, so that two processes that keep waking each other starve no third
//! one. In place of one from the global queue, when there is none, it may be the oldest of another
//! worker that has more (`worker/balance.rs`).
//!
//! **The bound.** Let `R` be the rotation (127), `G` the batch taken from the global queue (16). A
//! process with `n` others before it in the global queue, or below it in a deque, starts within `(R
//! + 1) * (n + 1)` picks of the workers that have it: nothing is ever put before it; each rotation
//! takes the first of the global queue, if there is one, and the oldest of the deque, and comes
//! after at most `R + 1` picks; and a thief, which moves it to another deque with those below it,
//! runs the oldest of these first. From the global queue it may be moved to a deque, which is empty
//! then, and lies there above at most `G` others: `(R + 1) * (n + G + 2)` picks in all.
//!
//! Those are picks of ready processes that are not urgent, and a pick is a turn, which may have
//! several steps (`turn/steps.rs`), or several turns (`turn/catch_up.rs`). Let `K` be the picks in
//! a row from the urgent lane (8): while it is in use, one in `K + 1` picks of a worker is not from
//! there, so that the process starts within `(K + 1) * (R + 1) * (n + G + 2)` picks. The lane of
//! arrivals makes them `A + 1` times as many while it is in use; `A` is 256. One that has
//! `n` others before it in the urgent lane starts within `n + 1 + (n + 1) / K + W` picks of the `W`
//! workers that are in no step: each passes the lane over once at the most, and then at every
//! `K + 1`st pick.

use super::Worker;
use super::rotation::Due;
use crate::base::clock::nanos;
use crate::policy::{STEAL_ROUNDS, URGENT_STREAK};
use crate::probe::{Decide, Decider, Probe, Theft};
use crate::runtime::token::Token;
use ganger_deque::Steal;
use ganger_sync::hint;
use smallvec::SmallVec;

impl Worker<'_> {
    /// The ladder.
    pub(super) fn find_work(&mut self) -> Option<Token> {
        if self.shared.queues.urgent.is_empty() {
            self.look_at_arrivals()
        } else {
            self.look_at_urgent()
        }
    }

    /// The first rung, which is passed over after so many picks, unless there is nothing else.
    #[cold]
    fn look_at_urgent(&mut self) -> Option<Token> {
        if self.shared.timing.time.nanos() >= self.slot.sources() {
            self.poll_timers();
        }
        let first = if self.urgent_streak < URGENT_STREAK {
            self.take_urgent()
        } else {
            self.urgent_streak = 0;
            None
        };
        let token = first
            .or_else(|| self.look_at_arrivals())
            .or_else(|| self.take_urgent());
        // The end of a search wakes a sleeper for the rest.
        if !self.searching && !self.shared.queues.urgent.is_empty() {
            self.shared.queues.idle.notify_from_outside();
        }
        token
    }

    fn take_urgent(&mut self) -> Option<Token> {
        let token = self.shared.queues.urgent.pop()?;
        self.urgent_streak += 1;
        self.counters.urgent_picks.bump();
        Some(token)
    }

    /// The second rung, which is passed over after so many picks, or so long, unless there is
    /// nothing else.
    #[inline]
    fn look_at_arrivals(&mut self) -> Option<Token> {
        if self.shared.queues.arrivals.is_empty() {
            self.look_at_the_rest()
        } else {
            self.pick_arrival()
        }
    }

    #[cold]
    #[inline(never)]
    fn pick_arrival(&mut self) -> Option<Token> {
        let now = self.shared.now();
        if now >= self.slot.sources() {
            self.poll_timers();
        }
        let token = self
            .take_arrival(now)
            .or_else(|| self.look_at_the_rest())
            .or_else(|| {
                self.arrivals.begin_again(now);
                self.pop_arrival()
            });
        // The end of a search wakes a sleeper for the rest.
        if !self.searching && !self.shared.queues.arrivals.is_empty() {
            self.shared.queues.idle.notify();
        }
        token
    }

    /// One of the lane, if its streak goes on.
    fn take_arrival(&mut self, now: u64) -> Option<Token> {
        if self.shared.queues.arrivals.is_empty() {
            return None;
        }
        let counters = self.counters;
        let others = counters.local_picks.get() + counters.global_picks.get();
        if self.arrivals.goes_on(others + counters.steals.get(), now) {
            self.pop_arrival()
        } else {
            None
        }
    }

    fn pop_arrival(&self) -> Option<Token> {
        let token = self.shared.queues.arrivals.pop()?;
        self.counters.arrival_picks.bump();
        Some(token)
    }

    #[inline]
    fn look_at_the_rest(&mut self) -> Option<Token> {
        let now = self.shared.timing.time.nanos();
        if (self.rotation.is_counted_out() || now >= self.slot.alert())
            && let Some(token) = self.take_due(now)
        {
            return Some(token);
        }
        if let Some(token) = self.queue.deque.pop() {
            self.counters.local_picks.bump_own();
            return Some(token);
        }
        self.look_elsewhere()
    }

    /// What comes before a pick, once the picks or the time say so.
    #[cold]
    #[inline(never)]
    fn take_due(&mut self, now: u64) -> Option<Token> {
        if now >= self.slot.sources() {
            self.poll_timers();
            if let Some(token) = self.take_arrival(self.shared.now()) {
                self.rotation.uncount();
                self.slot.set_alert(self.rotation.due());
                return Some(token);
            }
        }
        let token = (self.rotation.left == 0 || self.rotation.is_over(now))
            .then(|| self.take_rotation(now))
            .flatten();
        self.slot.set_alert(self.rotation.due());
        if token.is_some() && !self.searching && !self.shared.queues.arrivals.is_empty() {
            // One that is alone there has been left to this worker.
            self.shared.queues.idle.notify();
        }
        token
    }

    fn take_rotation(&mut self, now: u64) -> Option<Token> {
        let mut due = self.take_from_rotation(now)?;
        if due == Due::Oldest {
            if let Some(oldest) = self.pick_oldest() {
                return Some(oldest);
            }
            // There is none: this is a pick like any other, and may be a rotation itself.
            if !self.rotation.is_due(now) {
                return None;
            }
            due = self.take_from_rotation(now)?;
        }
        if due == Due::Global {
            return self.pick_global();
        }
        self.rotate(now)
    }

    fn take_from_rotation(&mut self, now: u64) -> Option<Due> {
        let (queue, shared) = (self.queue, self.shared);
        let is_shorter = || queue.deque.len() < shared.queues.global.len();
        let clock = || nanos(Decider::time().unwrap_or_else(|| shared.timing.time.read()));
        (self.rotation).take(now, queue.has_woken(), is_shorter, clock)
    }

    fn pick_global(&mut self) -> Option<Token> {
        let first = self.shared.queues.global.pop();
        match first {
            Some(_) => self.counters.global_picks.bump(),
            None => self.rotation.forget_the_global(),
        }
        first
    }

    pub(super) fn rotate(&mut self, now: u64) -> Option<Token> {
        self.counters.rotations.bump();
        self.poll_timers_late(now);
        self.take_over();
        if let Some(token) = self.shared.queues.global.pop() {
            self.counters.global_picks.bump();
            self.rotation.continue_with_the_oldest();
            return Some(token);
        }
        if let Some(token) = self.balance(now) {
            self.rotation.continue_with_the_oldest();
            return Some(token);
        }
        self.pick_oldest()
    }

    fn pick_oldest(&self) -> Option<Token> {
        let oldest = self.take_oldest()?;
        self.counters.local_picks.bump_own();
        Some(oldest)
    }

    /// Takes half of what waits behind a step whose worker has been relieved: a worker that never
    /// runs out of processes of its own would not steal it, and its owner does not come back to it.
    fn take_over(&self) {
        let (slots, own) = (&self.shared.worker_slots, self.queue.index);
        let stealers = self.shared.stealers();
        if stealers.len() == slots.workers() {
            return;
        }
        let is_left = |&victim: &usize| {
            victim != own && slots.is_replaced(victim) && !stealers[victim].is_empty()
        };
        let above = self.queue.deque.len();
        if let Some(victim) = (0..stealers.len()).find(is_left)
            && let Steal::Success(count) =
                stealers[victim].steal_half_into(&self.queue.deque, usize::MAX)
        {
            let (probe, unknown) = (&self.shared.probe, Default::default());
            probe.stole(self.queue.index, unknown, Theft::Onto(above));
            self.queue.begin_woken(above);
            self.counters.steals.bump();
            self.counters.stolen.add(count as u64);
        }
    }

    /// The oldest process of the own deque.
    pub(super) fn take_oldest(&self) -> Option<Token> {
        let own = &self.shared.stealers()[self.queue.index];
        // A thief pays more for what its owner has not exposed, and here the two are one.
        self.queue.deque.expose();
        loop {
            match own.steal() {
                Steal::Success(token) => return Some(token),
                Steal::Empty => return None,
                // A thief was faster; what it left is still there.
                Steal::Retry => hint::spin_loop(),
            }
        }
    }

    /// The rungs below the own deque.
    #[inline(never)]
    fn look_elsewhere(&mut self) -> Option<Token> {
        self.queue.end_woken();
        self.rotation.forget_the_oldest();
        self.take_global().or_else(|| self.steal())
    }

    fn take_global(&self) -> Option<Token> {
        let mut taken: SmallVec<[Token; 17]> = SmallVec::new();
        let most = 1 + self.shared.config.global_batch;
        taken.extend(self.shared.queues.global.pop_batch(most));
        self.counters.global_picks.add(taken.len() as u64);
        // Other threads have written the cells last: the processor fetches all of them at once.
        taken.iter().for_each(Token::prefetch);
        // The last one pushed is the first one popped: the order of the global queue is kept.
        while taken.len() > 1
            && let Some(token) = taken.pop()
        {
            self.queue.deque.push(token);
        }
        taken.pop()
    }

    fn steal(&mut self) -> Option<Token> {
        if !self.searching {
            self.searching = self.shared.queues.idle.begin_search();
        }
        let stealers = self.shared.stealers();
        let victims = stealers.len();
        if !self.searching || victims < 2 {
            return None;
        }
        if Decider::happens("steal fails") {
            return None;
        }
        for _ in 0..STEAL_ROUNDS {
            let start = self.draw("victim", victims);
            for victim in (start..victims)
                .chain(0..start)
                .filter(|&v| v != self.queue.index)
            {
                let observed = self.shared.probe.observe(victim);
                let stolen = stealers[victim].steal_half_into(&self.queue.deque, usize::MAX);
                if let Steal::Success(count) = stolen {
                    (self.shared.probe).stole(self.queue.index, observed, Theft::Half);
                    self.queue.begin_woken(0);
                    self.counters.steals.bump();
                    self.counters.stolen.add(count as u64);
                    // The oldest, so that a process that is stolen again and again comes closer to
                    // its turn each time. Other thieves may have taken them all in turn.
                    if let Some(token) = self.take_oldest() {
                        return Some(token);
                    }
                }
            }
        }
        None
    }

    /// One of so many at random; `what` says what for.
    pub(super) fn draw(&mut self, what: &'static str, of: usize) -> usize {
        Decider::choose(what, of).unwrap_or_else(|| self.random.usize(..of))
    }
}
