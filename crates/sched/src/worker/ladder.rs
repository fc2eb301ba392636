//! Where a worker looks for a process: rung by rung, until it finds one.
//!
//! **Where it looks**, in this order (`policy.rs` has the numbers): the urgent lane (processes with
//! system events), at most eight times before it is passed over; the lane of arrivals (processes
//! woken by a timer), 256 times or a millisecond at most before it is passed over; its own deque,
//! youngest first (the data of a process just woken is in the cache), or oldest first while
//! processes give way there (`runtime/round.rs`); the global queue (a process to run, some more for
//! the deque); the deques of other workers, of which it takes the older half. **Rotation**: at
//! every 127th pick outside of the lanes, earlier if steps are long (`worker/rotation.rs`), and at
//! the first such pick after 10 ms without a rotation, the worker looks at the global queue first
//! and takes the oldest of its own deque next, but after a slice of the processes woken by the
//! first. So two processes waking each other starve no third process. If the global queue is empty,
//! the oldest of a worker with more may take its place (`worker/balance.rs`).
//!
//! **The bound.** Let `R` be the rotation (127), `G` the batch from the global queue (16). A
//! process with `n` processes before it in the global queue, or below it in a deque, starts within
//! `(R + 1) * (n + 1)` picks of its workers. For nothing is ever put before it; each rotation takes
//! the first of the global queue, if any, and the oldest of the deque, both within `R + 1` picks of
//! the last rotation's; and a thief moves it with the processes below it, and runs the oldest
//! first. From the global queue it may move to an empty deque, above at most `G` processes: `(R +
//! 1) * (n + G + 2)` picks in all.
//!
//! These are picks of ready, not urgent processes. A pick is a turn, with several steps at times
//! (`turn/steps.rs`), or several turns (`turn/catch_up.rs`). Let `K` be the picks in a row from the
//! urgent lane (8): while the lane is in use, every `K + 1`st pick of a worker is from elsewhere,
//! and the process starts within `(K + 1) * (R + 1) * (n + G + 2)` picks. The lane of arrivals
//! makes them `A + 1` times as many while it is in use; `A` is 256. A process with `n` before it in
//! the urgent lane starts within `n + 1 + (n + 1) / K + W` picks of the `W` workers between steps:
//! each passes the lane over once, and then at every `K + 1`st pick.

use super::Worker;
use super::rotation::Due;
use crate::base::clock::nanos;
use crate::policy::{STEAL_ROUNDS, URGENT_STREAK};
use crate::probe::{Decide, Decider, From, Probe, Theft};
use crate::runtime::round::Next as Round;
use crate::runtime::token::Token;
use ganger_deque::Steal;
use ganger_sync::hint;
use smallvec::SmallVec;

impl Worker<'_> {
    /// Finds a process on the ladder.
    pub(super) fn find_work(&mut self) -> Option<Token> {
        if self.shared.queues.urgent.is_empty() {
            self.look_at_arrivals()
        } else {
            self.look_at_urgent()
        }
    }

    /// Looks on the first rung: passed over after [`URGENT_STREAK`] picks, unless all other queues
    /// are empty.
    #[cold]
    fn look_at_urgent(&mut self) -> Option<Token> {
        if self.shared.timing.time.nanos() >= self.slot.timers() {
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
        self.shared.probe.taking(self.queue.index, From::Urgent);
        Some(token)
    }

    /// Looks on the second rung: passed over after a [`Streak`](super::streak::Streak), unless all
    /// other queues are empty.
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
        if now >= self.slot.timers() {
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

    /// Takes a process of the lane, if its streak goes on.
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
        self.shared.probe.taking(self.queue.index, From::Arrival);
        Some(token)
    }

    fn look_at_the_rest(&mut self) -> Option<Token> {
        let now = self.shared.timing.time.nanos();
        if (self.rotation.is_counted_out() || now >= self.slot.alert())
            && let Some(token) = self.take_due(now)
        {
            return Some(token);
        }
        if self.queue.round.is_on()
            && let Some(token) = self.pick_in_round()
        {
            return Some(token);
        }
        if let Some(token) = self.queue.deque.pop() {
            self.counters.local_picks.bump_own();
            return Some(token);
        }
        self.look_elsewhere()
    }

    /// Takes the next process of a round (`runtime/round.rs`), unless a woken process comes first.
    #[inline(never)]
    fn pick_in_round(&mut self) -> Option<Token> {
        let queue = self.queue;
        if queue.has_woken() {
            return None;
        }
        let len = queue.deque.len();
        match queue.round.pick(len) {
            Round::Over => return None,
            Round::Again if !self.shared.queues.global.is_empty() => {
                if let Some(token) = self.take_global() {
                    // The others have waited as well: no process of the deque comes before them.
                    queue.begin_woken(len);
                    return Some(token);
                }
            }
            Round::Oldest | Round::Again => {}
        }
        if !queue.deque.has_exposed() {
            queue.deque.expose();
        }
        let oldest = self.shared.stealers()[queue.index].steal().success()?;
        self.counters.local_picks.bump_own();
        Some(oldest)
    }

    /// Serves due timers and rotations, which come before a pick.
    #[cold]
    #[inline(never)]
    fn take_due(&mut self, now: u64) -> Option<Token> {
        if now >= self.slot.timers() {
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
            // A lone arrival was left to this worker.
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
            // The deque is empty: this is an ordinary pick, and may be a rotation itself.
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
        (self.rotation).take(now, queue.woken_at_most(), is_shorter, clock)
    }

    fn pick_global(&mut self) -> Option<Token> {
        let first = self.shared.queues.global.pop();
        match first {
            Some(_) => {
                self.counters.global_picks.bump();
                self.shared.probe.taking(self.queue.index, From::Global);
            }
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
            self.shared.probe.taking(self.queue.index, From::Global);
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

    /// Takes half of the processes behind a step whose worker was replaced. Workers that never run
    /// out would not steal them, and their owner does not come back to them.
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
            probe.stole(own, (victim, count), unknown, Theft::Onto(above));
            self.queue.begin_woken(above);
            self.counters.steals.bump();
            self.counters.stolen.add(count as u64);
        }
    }

    /// Takes the oldest process of the own deque.
    pub(super) fn take_oldest(&self) -> Option<Token> {
        let own = &self.shared.stealers()[self.queue.index];
        // A theft of exposed processes is cheaper, and here the thief is the owner.
        self.queue.deque.expose();
        loop {
            match own.steal() {
                Steal::Success(token) => return Some(token),
                Steal::Empty => return None,
                // A thief was faster, and may have left some.
                Steal::Retry => hint::spin_loop(),
            }
        }
    }

    /// Looks on the rungs below the own deque.
    #[inline(never)]
    fn look_elsewhere(&mut self) -> Option<Token> {
        self.queue.end_woken();
        self.queue.round.end();
        self.rotation.forget_the_oldest();
        self.take_global().or_else(|| self.steal())
    }

    fn take_global(&self) -> Option<Token> {
        let mut taken: SmallVec<[Token; 17]> = SmallVec::new();
        let most = 1 + self.shared.config.global_batch;
        taken.extend(self.shared.queues.global.pop_batch(most));
        self.counters.global_picks.add(taken.len() as u64);
        // Other threads wrote the cells last: the processor fetches all at once.
        taken.iter().for_each(Token::prefetch);
        // The last pushed is popped first: this keeps the order of the global queue.
        while taken.len() > 1
            && let Some(token) = taken.pop()
        {
            self.queue.deque.push(token);
        }
        let first = taken.pop()?;
        self.shared.probe.taking(self.queue.index, From::Global);
        Some(first)
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
                    let (probe, own) = (&self.shared.probe, self.queue.index);
                    probe.stole(own, (victim, count), observed, Theft::Half);
                    self.queue.begin_woken(0);
                    self.counters.steals.bump();
                    self.counters.stolen.add(count as u64);
                    // The oldest: so a frequently stolen process comes closer to its turn each
                    // time. Other thieves may have taken all of them.
                    if let Some(token) = self.take_oldest() {
                        probe.taking(own, From::Stolen);
                        return Some(token);
                    }
                }
            }
        }
        None
    }

    /// Draws a random number below `of`; `what` names the decision.
    pub(super) fn draw(&mut self, what: &'static str, of: usize) -> usize {
        Decider::choose(what, of).unwrap_or_else(|| self.random.usize(..of))
    }
}
