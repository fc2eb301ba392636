//! A worker thread: find a process, give it its turn, again.
//!
//! **Where it looks**, in this order: the urgent lane (processes that have system events), up to eight
//! times before it is passed over once; its own deque, youngest first (a process that a step has just
//! woken finds its data in the cache); the global queue (one to run, some more for its deque); the
//! deques of others, of which it takes the older half. **Rotation**: at every 61st pick that is not
//! from the urgent lane, and at the first such pick after 10 ms without one, it looks at the global
//! queue first and takes the oldest of its own deque next, so that two processes that keep waking each
//! other starve nobody. In place of one from the global queue, when there is none, it may be the oldest of
//! another worker that has more (`worker/balance.rs`).
//!
//! **The bound.** Let `R` be the rotation (61), `G` the batch taken from the global queue (16). A
//! process with `n` others before it in the global queue, or below it in a deque, starts within
//! `(R + 1) * (n + 1)` picks of the workers that have it: nothing is ever put before it; each
//! rotation takes the first of the global queue, if there is one, and the oldest of the deque, and comes after
//! at most `R + 1` picks; and a thief, which moves it to another deque with those below it, runs the oldest
//! of these first. From the global queue it may be moved to a deque, which is empty then, and lies
//! there above at most `G` others: `(R + 1) * (n + G + 2)` picks in all.
//!
//! Those are picks of ready processes that are not urgent, and a pick is a turn, which may have several steps
//! (`run.rs`), or several turns (`run/catch_up.rs`). Let `K` be the picks in a row from the urgent
//! lane (8): while it is in use, one in `K + 1` picks of a worker is not from there, so that the process
//! starts within `(K + 1) * (R + 1) * (n + G + 2)` picks. One that has `n` others before it in the urgent
//! lane starts within `n + 1 + (n + 1) / K + W` picks of the `W` workers that are in no step: each passes
//! the lane over once at the most, and then at every `K + 1`st pick.
//!
//! **Without work**: below 4 empty looks it spins, below 16 it yields its thread, unless that has been in vain for long
//! (`worker/courtesy.rs`), then it sleeps; `idle.rs` says how, and why no process is left lying beside a sleeper. So
//! does one that may not search, because enough others do: it looks at its own deque and the global queue alone. Were
//! it to sleep at once, somebody who pushes one process after the other would find it asleep each time that the
//! searcher has found the last one.

mod balance;
mod courtesy;
mod duty;
mod rotation;

use self::courtesy::{Courtesy, GaveWay};
use self::rotation::{Due, Rotation};
use crate::crew::{Calls, Next};
use crate::idle::Woken;
use crate::local::{self, LocalQueue};
use crate::reaper::fence_after_halt;
use crate::run::Runner;
use crate::shared::Shared;
#[cfg(feature = "sim")]
use crate::sim;
use crate::stats::Counters;
use crate::token::Token;
use ganger_deque::{Steal, Worker as Deque};
use ganger_mpsc::node_cache;
use ganger_sync::hint;
use smallvec::SmallVec;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

/// How many picks in a row from the urgent lane come before one of another process.
pub(crate) const URGENT_STREAK: u32 = 8;

/// How often a searching worker goes over all victims in one look.
const STEAL_ROUNDS: usize = 4;

/// Runs on the calling thread until the scheduler halts.
pub(crate) fn work(shared: Arc<Shared>, index: usize, deque: Deque<Token>) {
    shared.crew.enter(index);
    shared.counters.of(Some(index)).hand_over();
    let queue = LocalQueue::new(shared, index, deque);
    let mut has_left = false;
    local::enter(&queue, || {
        let mut worker = Worker::new(&queue);
        let mut runner = Runner::new(&queue.shared, Some(&queue));
        let _bomb = AbortOnPanic;
        let backtraces = queue.shared.backtraces.as_ref();
        let _entered = backtraces.map(|it| it.enter(index));
        worker.look_on();
        worker.report();
        if worker.shared.crew.is_relieved(index) && worker.stand_down() == Next::Leave {
            has_left = true;
            return;
        }
        while let Some(token) = worker.next() {
            runner.run(token);
            if worker.calls.is_any() && worker.answer() == Next::Leave {
                worker.has_left = true;
                break;
            }
        }
        has_left = worker.has_left;
    });
    let LocalQueue {
        shared,
        deque,
        cache,
        pids,
        ..
    } = queue;
    drop(pids);
    cache.into_inner().leave(&shared.pool);
    if shared.shutdown.is_halted() {
        shared.pool.close();
    }
    shared.crew.exit(index);
    if has_left {
        shared.crew.leave(index, deque);
    }
}

/// Ends the program when a worker's search for work panics, which no user's code has a part in.
///
/// The thread would be gone, with the processes in its deque, and count as searching for ever, so
/// that nobody else is woken: the program would stand still and not say so. The only known way is a
/// filter for system calls that forbids `membarrier` and was installed after the scheduler started.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Not by a macro: the output of a test would be caught, and go with the program.
            let message = "ganger: a worker cannot go on after the panic above; aborting";
            let _told = writeln!(io::stderr(), "{message}");
            std::process::abort();
        }
    }
}

/// What a look for a process has come to.
enum Looked {
    Found(Token),
    Nothing(Rest),
    Halted,
}

/// What comes before the next look.
enum Rest {
    Spin,
    Yield,
    Sleep,
}

struct Worker<'a> {
    queue: &'a LocalQueue,
    shared: &'a Shared,
    counters: &'a Counters,
    calls: &'a Calls,
    random: fastrand::Rng,
    /// Whether it counts as searching in `idle`.
    searching: bool,
    /// Picks from the urgent lane since it was passed over last.
    urgent_streak: u32,
    rotation: Rotation,
    /// When it last compared itself with another worker, as above.
    last_balance: u64,
    /// It is in no turn, as `crew` knows.
    is_looking: bool,
    /// It was a spare that nobody has needed for a while.
    has_left: bool,
    courtesy: Courtesy,
}

impl<'a> Worker<'a> {
    fn new(queue: &'a LocalQueue) -> Self {
        let shared = &*queue.shared;
        Self {
            queue,
            shared,
            counters: shared.counters.of(Some(queue.index)),
            calls: shared.crew.calls(queue.index),
            rotation: Rotation::new(&shared.config, shared.time.nanos()),
            last_balance: 0,
            random: fastrand::Rng::with_seed(queue.index as u64),
            searching: false,
            urgent_streak: 0,
            is_looking: false,
            has_left: false,
            courtesy: Courtesy::default(),
        }
    }

    /// The next process to run; none when the scheduler has halted. Blocks while there is none.
    fn next(&mut self) -> Option<Token> {
        let mut empty_looks = 0_u32;
        self.shared.check.begin_pick(self.queue.index);
        loop {
            match self.look_once(&mut empty_looks) {
                Looked::Found(token) => {
                    self.take_up();
                    return Some(token);
                }
                Looked::Halted => {
                    self.found();
                    return None;
                }
                Looked::Nothing(rest) => empty_looks = self.rest(&rest, empty_looks)?,
            }
        }
    }

    /// Rests after so many empty looks, and does what it has been called to meanwhile. Returns after how many the
    /// next one comes; none when the thread is to leave.
    #[cold]
    #[inline(never)]
    fn rest(&mut self, rest: &Rest, empty_looks: u32) -> Option<u32> {
        let has_slept = self.rest_only(rest, empty_looks);
        if self.calls.is_any() {
            if std::mem::take(&mut self.searching) {
                self.shared.idle.end_search(|| self.shared.has_work());
            }
            if self.answer() == Next::Leave {
                self.has_left = true;
                return None;
            }
            return Some(0);
        }
        Some(if has_slept { 0 } else { empty_looks })
    }

    /// Spins, yields or sleeps; whether it has slept.
    fn rest_only(&mut self, rest: &Rest, empty_looks: u32) -> bool {
        match rest {
            Rest::Spin => hint::spin_loop(),
            Rest::Yield => {
                let is_first = empty_looks <= self.shared.config.spin_looks.max(1);
                match self.courtesy.give_way(is_first) {
                    GaveWay::Yielded(lasted) => self.come_back_after(lasted),
                    GaveWay::Paused => {}
                    GaveWay::Declined => {
                        self.sleep();
                        return true;
                    }
                }
            }
            Rest::Sleep => {
                self.sleep();
                return true;
            }
        }
        false
    }

    /// It has yielded its thread for so long.
    fn come_back_after(&mut self, lasted: Duration) {
        let (shared, is_relied_on) = (self.shared, self.searching);
        (self.courtesy).come_back(lasted, || is_relied_on && shared.has_kept_waiting());
    }

    /// One look, after so many that found nothing.
    #[inline]
    fn look_once(&mut self, empty_looks: &mut u32) -> Looked {
        if let Some(token) = self.look() {
            return self.take_off(token);
        }
        self.look_on();
        if self.shared.shutdown.is_halted() {
            // What has been queued since, before the halt.
            fence_after_halt();
            return self.look().map_or(Looked::Halted, |it| self.take_off(it));
        }
        *empty_looks = empty_looks.saturating_add(1);
        Looked::Nothing(if *empty_looks < self.shared.config.spin_looks {
            Rest::Spin
        } else if *empty_looks < self.shared.config.yield_looks {
            Rest::Yield
        } else {
            Rest::Sleep
        })
    }

    /// It looks no more, and is about to run that one.
    #[inline]
    fn take_off(&mut self, token: Token) -> Looked {
        if self.is_looking {
            self.is_looking = false;
            self.shared.crew.set_looking(self.queue.index, false);
        }
        self.shared.check.pick(self.queue.index, &token);
        Looked::Found(token)
    }

    /// It has found a process: it searches no more, and wakes somebody for what is left.
    fn take_up(&mut self) {
        self.found();
        self.shared.check.end_pick(self.queue.index);
    }

    /// Says that this worker is in no turn.
    fn look_on(&mut self) {
        if !std::mem::replace(&mut self.is_looking, true) {
            self.shared.crew.set_looking(self.queue.index, true);
        }
    }

    /// The ladder.
    fn look(&mut self) -> Option<Token> {
        if self.shared.urgent.is_empty() {
            self.look_at_the_rest()
        } else {
            self.look_at_urgent()
        }
    }

    /// The first rung, which is passed over after so many picks, unless there is nothing else.
    #[cold]
    fn look_at_urgent(&mut self) -> Option<Token> {
        let first = if self.urgent_streak < URGENT_STREAK {
            self.take_urgent()
        } else {
            self.urgent_streak = 0;
            None
        };
        let token = first
            .or_else(|| self.look_at_the_rest())
            .or_else(|| self.take_urgent());
        // A searcher sees to it that somebody is woken for the rest when its search ends.
        if !self.searching && !self.shared.urgent.is_empty() {
            self.shared.idle.notify_from_outside();
        }
        token
    }

    fn take_urgent(&mut self) -> Option<Token> {
        let token = self.shared.urgent.pop()?;
        self.urgent_streak += 1;
        self.counters.urgent_picks.bump();
        Some(token)
    }

    #[inline]
    fn look_at_the_rest(&mut self) -> Option<Token> {
        let now = self.shared.time.nanos();
        if self.rotation.is_due(now)
            && let Some(token) = self.take_due(now)
        {
            return Some(token);
        }
        if let Some(token) = self.queue.deque.pop() {
            self.counters.local_picks.bump();
            return Some(token);
        }
        self.look_elsewhere()
    }

    #[cold]
    #[inline(never)]
    fn take_due(&mut self, now: u64) -> Option<Token> {
        if self.rotation.take(now) == Due::Oldest {
            if let Some(oldest) = self.pick_oldest() {
                return Some(oldest);
            }
            // There is none: this is a pick like any other, and may be a rotation itself.
            if !self.rotation.is_due(now) {
                return None;
            }
            let _rotation = self.rotation.take(now);
        }
        self.rotate(now)
    }

    fn rotate(&mut self, now: u64) -> Option<Token> {
        self.counters.rotations.bump();
        self.take_over();
        if let Some(token) = self.shared.global.pop() {
            self.counters.global_picks.bump();
            self.rotation.go_on_with_the_oldest();
            return Some(token);
        }
        if let Some(token) = self.balance(now) {
            self.rotation.go_on_with_the_oldest();
            return Some(token);
        }
        self.pick_oldest()
    }

    fn pick_oldest(&self) -> Option<Token> {
        let oldest = self.take_oldest()?;
        self.counters.local_picks.bump();
        Some(oldest)
    }

    /// Takes half of what waits behind a step whose worker has been relieved: a worker that never runs
    /// out of processes of its own would not steal it, and its owner does not come back to it.
    fn take_over(&self) {
        let (crew, own) = (&self.shared.crew, self.queue.index);
        let stealers = self.shared.stealers();
        if stealers.len() == crew.workers() {
            return;
        }
        let is_left = |&victim: &usize| {
            victim != own && crew.is_relieved(victim) && !stealers[victim].is_empty()
        };
        let above = self.queue.deque.len();
        if let Some(victim) = (0..stealers.len()).find(is_left)
            && let Steal::Success(count) =
                stealers[victim].steal_half_into(&self.queue.deque, usize::MAX)
        {
            self.shared.check.take_over(self.queue.index, above);
            self.counters.steals.bump();
            self.counters.stolen.add(count as u64);
        }
    }

    /// The oldest process of the own deque.
    fn take_oldest(&self) -> Option<Token> {
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
        self.rotation.forget_the_oldest();
        self.take_global().or_else(|| self.steal())
    }

    fn take_global(&self) -> Option<Token> {
        let mut taken: SmallVec<[Token; 17]> = SmallVec::new();
        let most = 1 + self.shared.config.global_batch;
        self.shared.global.take(most, |token| taken.push(token));
        self.counters.global_picks.add(taken.len() as u64);
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
            self.searching = self.shared.idle.begin_search();
        }
        let stealers = self.shared.stealers();
        let victims = stealers.len();
        if !self.searching || victims < 2 {
            return None;
        }
        #[cfg(feature = "sim")]
        if sim::happens("steal fails") {
            return None;
        }
        for _ in 0..STEAL_ROUNDS {
            let start = self.draw("victim", victims);
            for victim in (start..victims)
                .chain(0..start)
                .filter(|&v| v != self.queue.index)
            {
                let glimpse = self.shared.check.glimpse(victim);
                let stolen = stealers[victim].steal_half_into(&self.queue.deque, usize::MAX);
                if let Steal::Success(count) = stolen {
                    self.shared.check.steal(self.queue.index, glimpse);
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
    #[cfg(not(feature = "sim"))]
    fn draw(&mut self, _what: &'static str, of: usize) -> usize {
        self.random.usize(..of)
    }

    #[cfg(feature = "sim")]
    fn draw(&mut self, what: &'static str, of: usize) -> usize {
        sim::choose(what, of).unwrap_or_else(|| self.random.usize(..of))
    }

    /// Ends the search, and wakes somebody for what is left.
    #[inline]
    fn found(&mut self) {
        if self.searching {
            self.end_search();
        }
        self.queue.offer();
    }

    #[cold]
    #[inline(never)]
    fn end_search(&mut self) {
        self.searching = false;
        // What it is called to it does after its turn; somebody who sleeps could do it now.
        let is_called = || self.calls.is_any();
        (self.shared.idle).end_search(|| self.shared.has_work() || is_called());
    }

    fn sleep(&mut self) {
        self.counters.sleeps.bump();
        self.courtesy.fall_asleep();
        // Before it is announced: giving memory back takes its time, and may be anybody's code.
        self.keep_nothing();
        let searching = std::mem::take(&mut self.searching);
        let woken = self.shared.idle.sleep(
            self.queue.index,
            searching,
            || self.shared.shutdown.is_halted() || self.calls.is_relieved(),
            || self.shared.has_work() || self.calls.is_any(),
            || self.fall_asleep(),
        );
        self.wake_up(woken);
    }

    /// It is about to send nothing for a while: gives up what it keeps for that.
    fn keep_nothing(&self) {
        node_cache::end_runs();
        self.shared.forget_known(self.queue);
    }

    /// It is about to block.
    fn fall_asleep(&self) {
        self.shared.check.end_pick(self.queue.index);
        self.shared.check.audit(self.shared);
    }

    fn wake_up(&mut self, woken: Woken) {
        self.shared.check.begin_pick(self.queue.index);
        self.searching = match woken {
            Woken::Notified => true,
            Woken::Withdrawn => {
                self.courtesy.stay_awake();
                // For what it withdraws for need not be all that others rely on it for.
                self.shared.idle.begin_search()
            }
        };
        self.rotation.restart(self.shared.time.nanos());
    }
}

#[cfg(feature = "sim")]
pub(crate) mod simulated;

#[cfg(all(test, not(loom)))]
mod tests;
