//! The searching and the sleeping workers, and the wake-ups owed to them.
//!
//! **Problem.** A worker without work should sleep, and a push should wake a worker, but not each
//! push: a system call costs more than most steps. And no process may stay in a queue while a
//! worker sleeps.
//!
//! **Rejected.** Waking a worker on every push (a herd that finds nothing). A timeout on sleep,
//! which hides a lost wake-up and wakes an idle machine.
//!
//! **State.** One word counts the workers that *search* (awake, looking at other workers' deques)
//! and the workers that *sleep*; a list under a lock names the sleepers. All other workers are
//! *busy*.
//!
//! **Protocol of a pusher** ([`notify`](Idle::notify)):
//! 1. Push; then a light fence; then read the word. Without a sleeper nothing is owed.
//! 2. Where a worker searches while another sleeps: a full fence, and read the word again. If a
//!    worker still searches, nothing is owed.
//! 3. Under the lock take a sleeper, count it as searching, wake it. A sleeper that waits elsewhere
//!    (in the driver) counts as busy: it may be long in coming, and no pusher should rely on it.
//!
//! From outside of any worker ([`notify_from_outside`](Idle::notify_from_outside)) a push is a
//! read-modify-write, and the fence behind it full: no second look is needed.
//!
//! **Protocol of a worker without work**:
//! 1. Search, if the searchers are not too many ([`begin_search`](Idle::begin_search)).
//! 2. Found something: stop searching ([`end_search`](Idle::end_search)). If no other worker
//!    searches and something is queued, notify: the pushes that saw this worker search relied on
//!    it.
//! 3. Found nothing ([`sleep_by`](Idle::sleep_by)): announce the sleep, make a heavy fence, and
//!    look again if no worker searches. If something is queued, withdraw and ask to search again.
//!    Else block.
//!
//! **Why nothing is left lying.** The pusher's fence stands between its push and its read, the
//! sleeper's between its announcement and its look: one of the two sees the other.
//!
//! A pusher owes nothing when it saw a searcher. The last searcher may find work: then it looks
//! again and notifies. Or it announces its sleep, and then looks at everything. If the look makes
//! it withdraw, it searches again, or another worker does: its find need not be the only push
//! during its search.
//!
//! The fence of a worker that ends its search is full, and a light fence would order nothing
//! against it: hence the pusher's full fence. Where no worker sleeps the pusher needs none. A
//! worker must fall asleep before a push can meet a sleeper, and does so by a heavy fence. Only
//! after this fence it reads whether another worker searches: an earlier end of a search may have
//! missed a push that the fence has brought to light.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `searching` | `begin_search`, `end_search`; sleepers and wakers, under the lock | all |
//! | `sleeping` | under the lock | all |

use ganger_sync::atomic::{AtomicU64, Ordering, fence};
use ganger_sync::sync::{Mutex, lock};
use ganger_sync::{CachePadded, Parker, fence as asymmetric};
use smallvec::SmallVec;
use std::time::Duration;

const SEARCHING: u64 = 1;
const SLEEPING: u64 = 1 << 32;
/// The monitor sleeps.
const UNWATCHED: u64 = 1 << 63;

/// A copy of the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) searching: u32,
    pub(crate) sleeping: u32,
    pub(crate) unwatched: bool,
}

impl From<u64> for Snapshot {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the lower half of the word is 32 bits, the upper 31"
    )]
    fn from(word: u64) -> Self {
        Self {
            searching: word as u32,
            sleeping: ((word & !UNWATCHED) >> 32) as u32,
            unwatched: word & UNWATCHED != 0,
        }
    }
}

/// How a worker is awake again.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The worker never slept: something was queued. The worker counts as busy, and asks to search
    /// before it looks.
    Withdrawn,
    /// Another thread woke the worker, or its time is over. The worker counts as searching.
    Notified,
    /// As `Notified`, after a wait elsewhere. The worker counts as busy, as after `Withdrawn`.
    Elsewhere,
}

/// How a sleeper has blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocked {
    /// Whether the worker has taken the token of its parker.
    pub(crate) has_token: bool,
    /// Whether the worker has waited elsewhere, see [`Idle::wait_elsewhere`].
    pub(crate) was_elsewhere: bool,
}

/// The number of a sleeping worker, with a mark for a wait elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sleeper(usize);

impl Sleeper {
    const ELSEWHERE: usize = 1 << (usize::BITS - 1);

    fn elsewhere(index: usize) -> Self {
        Self(index | Self::ELSEWHERE)
    }

    fn index(self) -> usize {
        self.0 & !Self::ELSEWHERE
    }

    /// Returns the worker's share in the word's counts when it is awake.
    fn awake(self) -> u64 {
        if self.0 & Self::ELSEWHERE == 0 {
            SEARCHING
        } else {
            0
        }
    }
}

/// The counters and the list of sleepers share one cache line: a waker touches the whole line, and
/// finds it cold as a rule.
struct Roster {
    word: AtomicU64,
    /// The first to fall asleep is first. Beyond the inline capacity the list is on the heap.
    sleepers: Mutex<SmallVec<[Sleeper; 5]>>,
}

#[cfg(all(not(ganger_loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Roster>() <= 64);

pub(crate) struct Idle {
    roster: CachePadded<Roster>,
    /// How many workers are on duty, with the sleeping workers.
    workers: u32,
    parkers: Box<[CachePadded<Parker>]>,
    monitor: Parker,
    /// Ends the wait of a thread elsewhere than on its parker: see `waiter.rs`.
    interrupt: Box<dyn Fn() + Send + Sync>,
}

impl Idle {
    /// Makes the state of `workers` workers, all of them busy, among the threads from 0 to below
    /// `threads`.
    pub(crate) fn new(workers: usize, threads: usize) -> Self {
        Self {
            workers: u32::try_from(workers).unwrap_or(u32::MAX),
            roster: CachePadded::new(Roster {
                word: AtomicU64::new(0),
                sleepers: Mutex::new(SmallVec::with_capacity(workers)),
            }),
            parkers: (0..threads)
                .map(|_| CachePadded::new(Parker::new()))
                .collect(),
            monitor: Parker::new(),
            interrupt: Box::new(|| ()),
        }
    }

    /// Sets the function to end the wait of a thread elsewhere.
    pub(crate) fn interrupted_by(self, interrupt: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            interrupt: Box::new(interrupt),
            ..self
        }
    }

    fn unpark(&self, parker: &Parker) {
        parker.unpark_or(&self.interrupt);
    }

    /// Copies the word, for display and for decisions on possibly stale numbers.
    pub(crate) fn snapshot(&self) -> Snapshot {
        // Ordering: Relaxed, because nothing is read on the strength of this load.
        self.roster.word.load(Ordering::Relaxed).into()
    }

    /// Grants a busy worker a search while at most half as many search as are busy. Returns whether
    /// it does.
    #[must_use]
    pub(crate) fn begin_search(&self) -> bool {
        // Ordering: Relaxed: a guess, checked by the exchange below.
        let mut now = self.roster.word.load(Ordering::Relaxed);
        loop {
            let Snapshot {
                searching,
                sleeping,
                ..
            } = now.into();
            // A relieved worker may be in excess for a moment.
            let busy_others = self.workers.saturating_sub(sleeping + searching + 1);
            if searching + 1 > busy_others.div_ceil(2).max(1) {
                return false;
            }
            // Ordering: SeqCst, one order with the other changes of the word. A failure is a new
            // guess.
            match self.roster.word.compare_exchange_weak(
                now,
                now + SEARCHING,
                Ordering::SeqCst,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(actual) => now = actual,
            }
        }
    }

    /// Ends the search of a worker with a find. The last searcher wakes another worker if
    /// `has_work` finds more in the queues: pushes that saw it search relied on it.
    pub(crate) fn end_search(&self, has_work: impl FnOnce() -> bool) {
        // Ordering: SeqCst, one order with the other changes of the word.
        let before = Snapshot::from(self.roster.word.fetch_sub(SEARCHING, Ordering::SeqCst));
        debug_assert!(before.searching > 0, "ended a search that was not begun");
        if before.searching != 1 {
            return;
        }
        // Pairs with the full fences in `notify_from_outside` and `notify`: either `has_work` sees
        // the push, or the pusher sees that no worker searches.
        asymmetric::behind_rmw();
        if has_work() {
            self.notify();
        }
    }

    /// Notifies as [`notify`](Self::notify) does, when this thread has pushed to a shared queue, by
    /// a read-modify-write.
    pub(crate) fn notify_from_outside(&self) -> bool {
        // Pairs with the full fence in `end_search` and the heavy fences in `look_again` and
        // `announce_monitor_sleep`: either the threads that look there see the push, or the load
        // below sees them.
        asymmetric::behind_rmw();
        // Ordering: Relaxed, because the fence orders it.
        self.wake_if_owed(Snapshot::from(self.roster.word.load(Ordering::Relaxed)))
    }

    /// Wakes a sleeper for a pushed item, unless a worker searches. Returns whether it did.
    ///
    /// Lock-free unless a sleeper must be woken.
    pub(crate) fn notify(&self) -> bool {
        // Pairs with the heavy fences in `look_again` and `announce_monitor_sleep`: either the
        // sleeper sees the push, or the load below sees the sleeper.
        asymmetric::light();
        // Ordering: Relaxed, because the fence orders it.
        let mut now = Snapshot::from(self.roster.word.load(Ordering::Relaxed));
        if now.sleeping == 0 && !now.unwatched {
            return false;
        }
        if now.searching > 0 {
            // Ordering: SeqCst, pairs with the fence in `end_search`: either the last searcher sees
            // the push, or the load below sees the end of its search.
            fence(Ordering::SeqCst);
            // Ordering: Relaxed, because the fence orders it.
            now = Snapshot::from(self.roster.word.load(Ordering::Relaxed));
        }
        self.wake_if_owed(now)
    }

    /// Acts on the numbers of searchers and sleepers behind a push.
    fn wake_if_owed(&self, now: Snapshot) -> bool {
        if now.searching > 0 {
            return false;
        }
        if now.sleeping > 0 && self.wake_one() {
            return true;
        }
        if now.unwatched {
            self.wake_monitor();
        }
        false
    }

    /// Wakes a monitor that does not watch. For a worker that has left the monitor something to
    /// watch: a pushed item, which the worker takes itself if its step ends soon, an uncovered
    /// moment of the timers, or the driver.
    pub(crate) fn defer(&self) {
        if self.is_unwatched_behind_write() {
            self.wake_monitor();
        }
    }

    /// Returns whether the monitor sleeps, for a worker that has written something for it.
    pub(crate) fn is_unwatched_behind_write(&self) -> bool {
        // Pairs with the heavy fence in `announce_monitor_sleep`.
        asymmetric::light();
        // Ordering: Relaxed, because the fence orders it.
        Snapshot::from(self.roster.word.load(Ordering::Relaxed)).unwatched
    }

    /// Wakes a sleeper unless a worker searches. Returns whether it did.
    #[cold]
    fn wake_one(&self) -> bool {
        let mut sleepers = lock(&self.roster.sleepers);
        // Ordering: SeqCst, pairs with the fence in `end_search`, as in `notify`.
        fence(Ordering::SeqCst);
        // Ordering: Relaxed, because the fence orders it; the lock keeps `sleeping` still.
        let now = Snapshot::from(self.roster.word.load(Ordering::Relaxed));
        if now.searching > 0 {
            return false;
        }
        let Some(sleeper) = sleepers.pop() else {
            return false;
        };
        // Ordering: SeqCst, one order with `end_search` and `announce`.
        self.roster
            .word
            .fetch_add(sleeper.awake().wrapping_sub(SLEEPING), Ordering::SeqCst);
        drop(sleepers);
        self.unpark(&self.parkers[sleeper.index()]);
        true
    }

    /// Wakes all sleepers.
    pub(crate) fn notify_all(&self) {
        let sleepers = {
            let mut sleepers = lock(&self.roster.sleepers);
            let awake: u64 = sleepers.iter().map(|sleeper| sleeper.awake()).sum();
            let asleep = sleepers.len() as u64 * SLEEPING;
            // Ordering: SeqCst, one order with `end_search` and `announce`.
            self.roster
                .word
                .fetch_add(awake.wrapping_sub(asleep), Ordering::SeqCst);
            std::mem::take(&mut *sleepers)
        };
        for sleeper in sleepers {
            self.unpark(&self.parkers[sleeper.index()]);
        }
    }

    /// Blocks the worker `index`, which has nothing to do, until it is notified.
    ///
    /// `searching` is the worker's present count. The worker does not block when `is_stopping`, or
    /// when no worker searches and `has_work` finds a queued item. `block` blocks on its parker, or
    /// [elsewhere](Self::wait_elsewhere).
    pub(crate) fn sleep_by(
        &self,
        index: usize,
        searching: bool,
        is_stopping: impl FnOnce() -> bool,
        has_work: impl FnOnce() -> bool,
        block: impl FnOnce(&Parker) -> Blocked,
    ) -> Woken {
        self.announce(index, searching);
        if self.look_again(index, is_stopping, has_work) {
            return Woken::Withdrawn;
        }
        let blocked = block(&self.parkers[index]);
        if !blocked.has_token {
            self.wake_oneself(index);
        }
        if blocked.was_elsewhere {
            Woken::Elsewhere
        } else {
            Woken::Notified
        }
    }

    /// Sleeps as [`sleep_by`](Self::sleep_by) does, for at most the time from `blocks`.
    #[cfg(test)]
    pub(crate) fn sleep(
        &self,
        index: usize,
        searching: bool,
        is_stopping: impl FnOnce() -> bool,
        has_work: impl FnOnce() -> bool,
        blocks: impl FnOnce() -> Option<Duration>,
    ) -> Woken {
        let block = |parker: &Parker| Blocked {
            has_token: block_on(parker, blocks()),
            was_elsewhere: false,
        };
        self.sleep_by(index, searching, is_stopping, has_work, block)
    }

    /// Marks a sleeper as awake, whose time is over.
    pub(crate) fn wake_oneself(&self, index: usize) {
        if !self.take_out(index, Sleeper::awake) {
            // Another thread is just waking it, and leaves a token for it alone.
            self.parkers[index].park();
        }
    }

    /// Puts a sleeper behind all other sleepers, which are woken first.
    pub(crate) fn wake_last(&self, index: usize) {
        self.put_last(index, Sleeper(index));
    }

    /// Wakes as [`wake_last`](Self::wake_last) does, for a sleeper about to wait elsewhere, and
    /// marks it. Returns `false` when another thread is just waking it, and leaves a token on its
    /// parker.
    #[must_use]
    pub(crate) fn wait_elsewhere(&self, index: usize) -> bool {
        self.put_last(index, Sleeper::elsewhere(index))
    }

    fn put_last(&self, index: usize, sleeper: Sleeper) -> bool {
        let mut sleepers = lock(&self.roster.sleepers);
        let Some(position) = sleepers.iter().position(|it| it.index() == index) else {
            return false;
        };
        sleepers[position] = sleeper;
        sleepers[..=position].rotate_right(1);
        true
    }

    /// Looks for work after the worker has announced its sleep: returns whether the worker has
    /// withdrawn the announcement, because it has found some.
    pub(crate) fn look_again(
        &self,
        index: usize,
        is_stopping: impl FnOnce() -> bool,
        has_work: impl FnOnce() -> bool,
    ) -> bool {
        // Pairs with the light fence in `notify` and the full fence in `notify_from_outside`:
        // either the look below sees the push, or the pusher sees the announcement.
        asymmetric::heavy();
        // Ordering: Relaxed, because the fence orders it.
        let others = Snapshot::from(self.roster.word.load(Ordering::Relaxed));
        let stay_awake = is_stopping() || (others.searching == 0 && has_work());
        stay_awake && self.withdraw(index)
    }

    /// Counts the worker as sleeping.
    pub(crate) fn announce(&self, index: usize, searching: bool) {
        let mut sleepers = lock(&self.roster.sleepers);
        sleepers.push(Sleeper(index));
        let change = SLEEPING.wrapping_sub(u64::from(searching) * SEARCHING);
        // Ordering: SeqCst, one order with the loads in `notify`.
        self.roster.word.fetch_add(change, Ordering::SeqCst);
    }

    /// Counts the worker as busy again; `false` when another thread is just waking it.
    fn withdraw(&self, index: usize) -> bool {
        self.take_out(index, |_| 0)
    }

    /// Wakes the worker, if it sleeps, for work that no other worker can do. A worker that
    /// announces its sleep after this sees the caller's earlier writes.
    pub(crate) fn wake(&self, index: usize) {
        if self.take_out(index, Sleeper::awake) {
            self.unpark(&self.parkers[index]);
        }
    }

    /// Takes a sleeper out, and counts it by `then`, if it sleeps.
    fn take_out(&self, index: usize, then: impl FnOnce(Sleeper) -> u64) -> bool {
        let mut sleepers = lock(&self.roster.sleepers);
        let Some(position) = sleepers.iter().rposition(|it| it.index() == index) else {
            return false;
        };
        let then = then(sleepers.remove(position));
        // Ordering: SeqCst, one order with the loads in `notify`.
        self.roster
            .word
            .fetch_add(then.wrapping_sub(SLEEPING), Ordering::SeqCst);
        true
    }

    /// Lets the monitor sleep: `block` blocks it until a thread pushes an item to watch, unless one
    /// is queued already. `block` returns whether it has taken the token of the parker.
    pub(crate) fn monitor_sleep(
        &self,
        stay_awake: impl FnOnce() -> bool,
        block: impl FnOnce(&Parker) -> bool,
    ) {
        self.announce_monitor_sleep(stay_awake);
        if !block(&self.monitor) {
            self.monitor_watches();
        }
    }

    /// Notes that the monitor is awake, whether it has been woken or not. A token left behind costs
    /// it a look.
    pub(crate) fn monitor_watches(&self) {
        // Ordering: SeqCst, one order with `announce_monitor_sleep` and `wake_monitor`.
        self.roster.word.fetch_and(!UNWATCHED, Ordering::SeqCst);
    }

    /// Announces that the monitor does not watch, until a thread pushes an item to watch.
    pub(crate) fn announce_monitor_sleep(&self, stay_awake: impl FnOnce() -> bool) {
        // Ordering: SeqCst, one order with `wake_monitor`.
        self.roster.word.fetch_or(UNWATCHED, Ordering::SeqCst);
        // Pairs with the light fences in `notify` and `defer`: either `stay_awake` sees the push,
        // or the pusher sees that the monitor does not watch.
        asymmetric::heavy();
        if stay_awake() {
            self.wake_monitor();
        }
    }

    /// Returns the parker of a sleeping worker.
    #[cfg(feature = "sim")]
    pub(crate) fn parker(&self, index: usize) -> &Parker {
        &self.parkers[index]
    }

    /// Returns the parker of the sleeping monitor.
    #[cfg(feature = "sim")]
    pub(crate) fn monitor_parker(&self) -> &Parker {
        &self.monitor
    }

    /// Lets the monitor sleep for `time`, or until [`end_monitor_wait`](Self::end_monitor_wait).
    pub(crate) fn monitor_wait(&self, time: Duration) {
        self.monitor.park_timeout(time);
    }

    /// Wakes the monitor in any state.
    pub(crate) fn end_monitor_wait(&self) {
        self.wake_monitor();
        self.unpark(&self.monitor);
    }

    /// Wakes the monitor, if it sleeps because there was nothing to watch.
    #[cold]
    pub(crate) fn wake_monitor(&self) {
        // Ordering: SeqCst, one order with `announce_monitor_sleep`.
        if self.roster.word.fetch_and(!UNWATCHED, Ordering::SeqCst) & UNWATCHED != 0 {
            self.unpark(&self.monitor);
        }
    }
}

/// Blocks until the parker has a token, for at most `time`. Returns whether it has taken a token.
pub(crate) fn block_on(parker: &Parker, time: Option<Duration>) -> bool {
    match time {
        None => {
            parker.park();
            true
        }
        Some(time) => parker.park_timeout(time),
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
