//! The state of a process: its mailbox's word, by which a thread gains the right to run the
//! process, and its marks.
//!
//! **Problem.** Workers, senders, completers and terminators act on a process at the same time. The
//! process must run on a single worker at a time, be queued at most once, and never sleep while an
//! event waits.
//!
//! **Rejected.** A lock a process: a sender would wait for a worker preempted inside. A separate
//! flag for wake-ups: between the worker's look at the flag and its store of the state a sender
//! could set the flag and miss the state. A state word of its own beside the mailbox's: each
//! message then costs four read-modify-writes in place of three, and the two words have to be kept
//! in step.
//!
//! **The run token** is the right, and the duty, to queue the process once. The worker that takes
//! the token from the queue is the only thread to touch the process itself, until the process
//! parks.
//!
//! **Protocol of the worker**: [`begin`](State::begin); [`drain`](State::drain); step; then one of
//! [`requeue`](State::requeue), [`park`](State::park), [`complete`](State::complete).
//! **Protocol of a sender** (completers are senders too): [`unpark`](State::unpark): when the
//! process waits, the sender owns the token, adds the event to the worker's drained events, and
//! queues the process. Else [`push`](State::push), and queue the process when its result says so.
//! **The sender of a system event** (a canceller is one) counts it and pushes it, whether the
//! process waits or not.
//! **A terminator** sets the mark, and then pushes an empty item to wake the process.
//!
//! **System events** overtake the other items of the mailbox, which keeps arrival order alone.
//! Their sender counts before it pushes ([`push_system`](State::push_system)); the worker drains,
//! and then reads the count ([`may_hold_system`](State::may_hold_system)). The drain of such an
//! event has acquired the push, and with it the count. Only the worker takes the count back, for
//! events shown to a step ([`take_system`](State::take_system)). So the worker finds each system
//! event as it leaves the mailbox, and never looks at drained events again. Rejected: a mark in
//! place of the count. Cleared by the worker while another sender is between its mark and its push,
//! the mark would leave this sender's event among the others; set after the push, it comes when the
//! event may be among the others already.
//!
//! **Why no wake-up is lost.** The wakeup flag is the mailbox being not empty. The worker leaves
//! the process alone by the very exchange of the mailbox's word that finds it empty (`park`), and
//! the push that displaces the park has the token: see [`Queue`]. **Why it runs on one worker.**
//! Only the owner of the token queues it, the queue hands it to a single worker, and the worker
//! keeps the token until it parks.
//!
//! | phase | mailbox | owner of the token | left by, how |
//! |---|---|---|---|
//! | `Ready` | any but parked | the queue (or the submitter) | the worker that took it: `begin` |
//! | `Running` | any but parked | the worker | the worker: `requeue`, `park`, `complete` |
//! | `Blocked`, `Idle` | parked | none | any thread: `unpark`, `push`, `terminate` |
//! | `Suspended` | any but parked | `Interventions` | the thread that took it there: `release` |
//! | `Complete` | closed | none, for ever | none |
//!
//! **A process that ends while it is terminated.** The worker closes the mailbox, and then marks
//! the process as `ended`. A terminator marks it as `terminate`. Both are read-modify-writes of one
//! word, so one of the two comes first, and each learns the order. A terminator in the first place
//! has ended the process, also when the mailbox is closed already. A terminator in the second place
//! reports the process as ended, and finds the mailbox closed. A terminator that finds the mailbox
//! closed beforehand marks nothing. Rejected: to mark, then to close. A terminator would learn of
//! the end while others still see the process run.
//!
//! **A terminator pushes a nudge unless an earlier nudge has been pushed**: one wakes the process,
//! and more would take memory until a long step is over. A terminator marks this after its push, so
//! no terminator relies on a terminator suspended before its own push. Rejected: a push by the
//! first terminator alone. While it is suspended, the process would sleep, although others
//! terminate it.
//!
//! **A look** at the part of the token's owner, while the process waits: the reader takes the token
//! as a sender does, and parks the process again as a worker does. Events pushed meanwhile find the
//! mailbox not parked, so their senders owe no wake-up: the reader finds them when it parks, and
//! queues the process.
//!
//! **A waker** wants another step, and pushes no event. When the process waits, the waker takes the
//! run token, as a sender does. Else it sets `WOKEN`, pushes a wake item, and sets `IS_IN`. A waker
//! does nothing more when both are set. The worker clears both when it has taken a wake item out,
//! and steps after that. So a running process has as many wake items as wakers are at it at once,
//! however often they wake it. Proof sketch: the worker's exchange comes after a waker's, and then
//! the step sees the waker's earlier writes. Or it comes before: then `WOKEN` has been set since,
//! and the waker that has set it has an item still in the mailbox. Rejected: `IS_IN` alone. A waker
//! may set it after the worker has taken its item out, and the next waker would rely on nothing.
//!
//! The phase is for display: the owner of the token writes it, a moment before the process parks
//! and a moment after it is woken. `Complete` is not a phase of its own, but a closed mailbox: a
//! thread that sees a process as ended can do nothing to it.
//!
//! **A suspended process** has its token in a table of the scheduler: see
//! `runtime/interventions.rs`. The mark `intervened` sends the worker there before the next step,
//! and before the process parks, in the same looks as `terminate`.
//!
//! | mark | set by | decides |
//! |---|---|---|
//! | `terminate` | any thread, before a nudge is pushed | that no further step starts |
//! | `nudged` | a terminator, after its push | that the next one pushes no nudge |
//! | `ended` | the worker, after the close | whether a `terminate` has come in time: before it |
//! | `cancelled`, `shutdown` | any thread | nothing here |
//! | `takes_back` | the worker | nothing here: it has taken yields back |
//! | `watched` | any thread, once its waker is in a table | whether `cancel` and the end wake |
//! | `intervened` | any thread; cleared by the worker | that the worker looks aside |
//! | `SYSTEM` upwards: a count | senders, before they push; worker | lane; look for system events |
//!
//! | `WOKEN` | `IS_IN` | what a waker finds in `wakes` |
//! |---|---|---|
//! | no | no | no waker before it that counts: it pushes |
//! | yes | no | a waker that may be suspended before its push: it pushes as well |
//! | no | yes | a waker was late with `IS_IN`, and its item is gone: it pushes |
//! | yes | yes | an item is there or on its way: it does nothing |

mod intervened;
mod outcome;

pub(crate) use outcome::{Begin, Leave, Waiting, Wake};

use ganger_mpsc::{Batch, Closed, Park, Pushed, Queue, Single};
use ganger_sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

const TERMINATE: u32 = 1;
const NUDGED: u32 = 1 << 1;
const ENDED: u32 = 1 << 2;
const CANCELLED: u32 = 1 << 3;
const SHUTDOWN: u32 = 1 << 4;
const TAKES_BACK: u32 = 1 << 5;
const WATCHED: u32 = 1 << 6;
const INTERVENED: u32 = if cfg!(any(test, feature = "observe")) {
    1 << 7
} else {
    0
};
/// A single system event: the bits from here on are their count. 2^24 untaken events would wait in
/// 1 GiB of nodes.
const SYSTEM: u32 = 1 << 8;

const READY: u8 = 0;
const RUNNING: u8 = 1;
const BLOCKED: u8 = 2;
const IDLE: u8 = 3;
const SUSPENDED: u8 = 4;

/// In the count of upgrades: a step has been shown the request to finish.
const FINISHES: u16 = 1 << 15;

const WOKEN: u8 = 1;
const IS_IN: u8 = 1 << 1;

/// Where a process is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProcessState {
    /// The process waits in a queue for a worker.
    Ready,
    /// A worker is inside its step, or dispatches the step's yields.
    Running,
    /// The process waits, and at least one of its commands has not completed.
    Blocked,
    /// The process waits, without outstanding commands.
    Idle,
    /// The process takes no steps until [`Handle::resume`](crate::Handle::resume).
    Suspended,
    /// The process has ended.
    Complete,
}

/// A copy of phase and marks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot {
    state: ProcessState,
    incarnation: u16,
    marks: u32,
}

impl Snapshot {
    pub(crate) fn state(self) -> ProcessState {
        self.state
    }

    pub(crate) fn is_terminating(self) -> bool {
        self.marks & TERMINATE != 0
    }

    pub(crate) fn is_cancelled(self) -> bool {
        self.marks & CANCELLED != 0
    }

    /// Returns how often the process has been upgraded or restarted in place, modulo 2^15.
    pub(crate) fn incarnation(self) -> u32 {
        self.incarnation.into()
    }
}

/// The state of a process whose mailbox holds items of the type `T`.
pub(crate) struct State<T> {
    mailbox: Queue<T>,
    /// Marks, set by any thread, of which only `intervened` is ever cleared; above them the count
    /// of system events that are accepted, or about to be, and not given to a step.
    marks: AtomicU32,
    /// Written by the owner of the run token alone.
    phase: AtomicU8,
    /// Set by wakers, cleared by the owner of the run token.
    wakes: AtomicU8,
    /// How often the process has been upgraded or restarted in place, for display, and `FINISHES`.
    /// Written by the owner of the run token alone.
    incarnation: AtomicU16,
}

impl<T> State<T> {
    /// Creates the state `Ready` of a process that is not queued yet: the caller owns the run
    /// token.
    pub(crate) fn new() -> Self {
        Self {
            mailbox: Queue::new(),
            marks: AtomicU32::new(0),
            phase: AtomicU8::new(READY),
            wakes: AtomicU8::new(0),
            incarnation: AtomicU16::new(0),
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        // Ordering: Acquire pairs with the Release in `enter`: a thread that reads a phase sees the
        // writes before it.
        let phase = self.phase.load(Ordering::Acquire);
        Snapshot {
            state: match phase {
                _ if self.is_closed() => ProcessState::Complete,
                READY => ProcessState::Ready,
                RUNNING => ProcessState::Running,
                BLOCKED => ProcessState::Blocked,
                SUSPENDED => ProcessState::Suspended,
                _ => ProcessState::Idle,
            },
            // Ordering: Relaxed: for display only.
            incarnation: self.incarnation.load(Ordering::Relaxed) & !FINISHES,
            marks: self.marks(),
        }
    }

    /// Changes `Ready -> Running`, by the worker that has taken the process from a queue.
    pub(crate) fn begin(&self) -> Begin {
        self.enter(RUNNING);
        let marks = self.marks();
        if marks & (TERMINATE | INTERVENED) == 0 {
            Begin::Step
        } else if marks & TERMINATE != 0 {
            Begin::Terminate
        } else {
            Begin::Intervene
        }
    }

    /// Returns whether events wait in the mailbox. For the owner of the token; for other threads a
    /// guess.
    pub(crate) fn has_events(&self) -> bool {
        !self.mailbox.is_empty()
    }

    /// Takes all items from the mailbox. For the owner of the token.
    pub(crate) fn drain(&self) -> Batch<T> {
        self.mailbox.drain()
    }

    /// Returns whether a system event may be among the items drained so far. For the owner of the
    /// token, after a drain.
    pub(crate) fn may_hold_system(&self) -> bool {
        // Ordering: Relaxed, because the drain's Acquire orders it: a sender counts before it
        // pushes.
        self.marks.load(Ordering::Relaxed) >= SYSTEM
    }

    /// Returns the number of system events that are accepted, or about to be, and given to no step
    /// yet.
    pub(crate) fn system_events(&self) -> usize {
        (self.marks() / SYSTEM) as usize
    }

    /// Notes that `count` system events have been given to a step, or carried out. For the owner of
    /// the token.
    pub(crate) fn take_system(&self, count: usize) {
        // As far as the count goes, so do the events.
        let count = u32::try_from(count).unwrap_or(u32::MAX / SYSTEM);
        // Ordering: Relaxed: a count; the mailbox itself orders the events.
        let before = self.marks.fetch_sub(count * SYSTEM, Ordering::Relaxed);
        debug_assert!(before / SYSTEM >= count, "took more than was counted");
    }

    /// Returns whether the turn should end: the process is terminated, or a system event waits or
    /// is on its way.
    pub(crate) fn must_leave(&self) -> bool {
        self.marks() & !(NUDGED | ENDED | CANCELLED | SHUTDOWN | TAKES_BACK | WATCHED) != 0
    }

    /// Returns whether the process accepts no events any more, because it has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.mailbox.is_closed()
    }

    /// Wakes the process if it waits: `Blocked`, `Idle -> Ready`. `true`: the caller owns the run
    /// token, and must queue the process.
    pub(crate) fn unpark(&self) -> bool {
        let is_unparked = self.mailbox.is_parked() && self.mailbox.cancel_park();
        if is_unparked {
            self.enter(READY);
        }
        is_unparked
    }

    /// Takes the run token of a waiting process, for a look at the part of its owner. The phase
    /// stays, so no reader takes the process for ready. `true`: the caller owns the token, and
    /// calls [`end_look`](Self::end_look).
    #[cfg(any(test, feature = "observe"))]
    pub(crate) fn begin_look(&self) -> bool {
        self.mailbox.is_parked() && self.mailbox.cancel_park()
    }

    /// Ends a look: the process waits on as before, unless something has come meanwhile. Then the
    /// caller still owns the token and must queue the process, also to have it ended.
    #[cfg(any(test, feature = "observe"))]
    pub(crate) fn end_look(&self, waiting: Waiting) -> Leave {
        self.park(waiting)
    }

    /// Puts an event into the mailbox: `Blocked`, `Idle -> Ready`.
    ///
    /// # Errors
    /// Gives the event back when the process has ended.
    pub(crate) fn push(&self, item: T) -> Result<Wake, T> {
        self.push_batch(Batch::of(item)).map_err(|mut refused| {
            let item = refused.pop_front();
            item.unwrap_or_else(|| unreachable!("the mailbox gives back what was pushed"))
        })
    }

    /// Pushes items, already in nodes, as [`push`](Self::push) does.
    pub(crate) fn push_batch(&self, items: Batch<T>) -> Result<Wake, Batch<T>> {
        self.wake(self.mailbox.push_batch(items))
    }

    /// Puts an item for this mailbox into its node.
    pub(crate) fn single(&self, item: T) -> Single<T> {
        self.mailbox.single(item)
    }

    /// Pushes an item, already in its node, as [`push`](Self::push) does.
    pub(crate) fn push_single(&self, item: Single<T>) -> Result<Wake, Single<T>> {
        self.wake(self.mailbox.push_single(item))
    }

    /// Returns the duty after a push.
    #[inline]
    fn wake<R>(&self, pushed: Result<Pushed, Closed<R>>) -> Result<Wake, R> {
        match pushed {
            Ok(Pushed::Unparked) => {
                self.enter(READY);
                Ok(Wake::Enqueue)
            }
            Ok(Pushed::First | Pushed::Queued) => Ok(Wake::Noted),
            Err(closed) => Err(closed.into_inner()),
        }
    }

    /// Pushes a system event as [`push`](Self::push) does; it overtakes the other events.
    ///
    /// # Errors
    /// Gives the event back when the process has ended.
    pub(crate) fn push_system(&self, item: T) -> Result<Wake, T> {
        // Ordering: Relaxed, because the Release of the following push orders it before the drain
        // that takes the item. Nothing reads the count of an ended process.
        self.marks.fetch_add(SYSTEM, Ordering::Relaxed);
        self.push(item)
    }

    /// Lets no further step start: sets the mark, and wakes the process by `nudge`, so it ends.
    /// `None` when the process has ended already, for another reason or another terminator.
    #[must_use]
    pub(crate) fn terminate(&self, nudge: T) -> Option<Wake> {
        if self.is_closed() {
            return None;
        }
        let before = self.mark_terminated();
        if before & ENDED != 0 {
            return None;
        }
        if before & NUDGED != 0 {
            // The nudge has woken the process, or the worker finds it before the process parks.
            return Some(Wake::Noted);
        }
        // A mailbox closed meanwhile needs no nudge: the mark came before the end.
        let wake = self.push(nudge).unwrap_or(Wake::Noted);
        // Ordering: Relaxed: a terminator that reads it has nothing left to do, and the push orders
        // the rest.
        self.marks.fetch_or(NUDGED, Ordering::Relaxed);
        Some(wake)
    }

    /// Has a process that does not wait take another step, by `item`. For a waker, after
    /// [`unpark`](Self::unpark).
    pub(crate) fn wake_behind(&self, item: impl FnOnce() -> T) -> Wake {
        // Ordering: Release pairs with the Acquire in `take_wake`: the step sees each waker's
        // earlier writes, also those of wakers without a push.
        let before = self.wakes.fetch_or(WOKEN, Ordering::Release);
        if before == WOKEN | IS_IN {
            return Wake::Noted;
        }
        // An ended process takes no step.
        let wake = self.push(item()).unwrap_or(Wake::Noted);
        // Ordering: Relaxed: a waker that reads it has nothing left to do, and the push orders the
        // rest.
        self.wakes.fetch_or(IS_IN, Ordering::Relaxed);
        wake
    }

    /// Notes that a wake item has been taken out, and a step follows. For the owner of the token.
    pub(crate) fn take_wake(&self) {
        // Ordering: Acquire pairs with the Release in `wake_behind`. A read-modify-write, so marks
        // set by other wakers in between stay on the chain of releases.
        self.wakes.fetch_and(0, Ordering::Acquire);
    }

    /// Sets the mark, as a terminator's first act. Returns the marks before.
    pub(crate) fn mark_terminated(&self) -> u32 {
        // Ordering: Release pairs with the Acquire in `marks` and in `complete`: the worker that
        // ends the process sees each terminator's earlier writes. Acquire pairs with the Release in
        // `complete`: a terminator after the end finds the mailbox closed.
        self.marks.fetch_or(TERMINATE, Ordering::AcqRel)
    }

    /// Changes `Running -> Ready`, by the worker, which keeps the run token and must queue the
    /// process.
    pub(crate) fn requeue(&self) -> Leave {
        let marks = self.marks();
        if marks & TERMINATE != 0 {
            return Leave::Terminate;
        }
        self.enter(READY);
        Self::lane(marks)
    }

    /// Changes `Running -> Blocked` or `Idle`, by the worker, unless an event waits.
    pub(crate) fn park(&self, waiting: Waiting) -> Leave {
        // A terminator or an intervening thread after this look pushes its nudge after it.
        let marks = self.marks();
        if marks & (TERMINATE | INTERVENED) != 0 {
            return self.requeue();
        }
        // An exchange bound to fail costs as much as a successful one.
        if !self.has_events() {
            self.enter(match waiting {
                Waiting::Blocked => BLOCKED,
                Waiting::Idle => IDLE,
            });
            if self.mailbox.park() == Park::Parked {
                return Leave::Parked;
            }
        }
        self.enter(READY);
        Self::lane(self.marks())
    }

    /// Returns how a process with these marks is queued again.
    fn lane(marks: u32) -> Leave {
        if marks >= SYSTEM {
            Leave::RequeueUrgent
        } else {
            Leave::Requeue
        }
    }

    /// Changes `Running -> Complete`, by the worker. Returns whether the process was terminated,
    /// and the items never seen by a step.
    pub(crate) fn complete(&self) -> (bool, Batch<T>) {
        debug_assert_eq!(
            self.snapshot().state(),
            ProcessState::Running,
            "completed by a non-owner"
        );
        let rest = self.mailbox.close().batch;
        // Ordering: Acquire pairs with the Release in `terminate`, of all earlier terminators.
        // Release pairs with the Acquire there: a later terminator finds the mailbox closed.
        let before = self.marks.fetch_or(ENDED, Ordering::AcqRel);
        (before & TERMINATE != 0, rest)
    }

    /// Returns whether the process takes no further step.
    pub(crate) fn is_terminating(&self) -> bool {
        self.marks() & TERMINATE != 0
    }

    /// Returns whether a waiting step of the process should wait no longer: the process is
    /// terminated, or its cancellation has not been shown to a step.
    pub(crate) fn is_called_back(&self) -> bool {
        let marks = self.marks();
        let is_to_be_told = marks & CANCELLED != 0 && marks >= SYSTEM;
        (marks & TERMINATE != 0 || is_to_be_told) && !self.is_closed()
    }

    /// Marks the process as cancelled. Returns whether it is watched: then the caller wakes its
    /// watchers.
    pub(crate) fn cancel(&self) -> bool {
        // Ordering: Release pairs with the Acquire in `marks` and `watch`. Acquire pairs with the
        // Release in `watch`: the canceller finds the waker in the table.
        self.marks.fetch_or(CANCELLED, Ordering::AcqRel) & WATCHED != 0
    }

    /// Marks the process as watched, by a thread that has put its waker into the table. Returns
    /// whether the wait is over already: the process has been asked to finish, or has ended.
    pub(crate) fn watch(&self) -> bool {
        // Ordering: Release pairs with the Acquire in `cancel`, and in `complete`, for
        // `is_watched`. Acquire pairs with the Release in them: the watcher sees their earlier
        // writes.
        let before = self.marks.fetch_or(WATCHED, Ordering::AcqRel);
        before & (CANCELLED | TERMINATE | ENDED) != 0
    }

    /// Returns whether the process has been watched. After [`complete`](Self::complete): a watcher
    /// missed here has seen the end.
    pub(crate) fn is_watched(&self) -> bool {
        self.marks() & WATCHED != 0
    }

    /// Returns whether the process has been cancelled or terminated, or has ended. Once true, it
    /// stays true.
    pub(crate) fn is_unwanted(&self) -> bool {
        self.marks() & (CANCELLED | TERMINATE) != 0 || self.is_closed()
    }

    /// Marks a process that has taken yields back. For the owner of the token.
    pub(crate) fn mark_taking_back(&self) {
        // Ordering: Relaxed: a lock orders the data behind the mark.
        self.marks.fetch_or(TAKES_BACK, Ordering::Relaxed);
    }

    /// Returns whether the process may have taken yields back.
    pub(crate) fn takes_back(&self) -> bool {
        self.marks() & TAKES_BACK != 0
    }

    /// Notes a step that is shown the request to finish. For the owner of the token.
    pub(crate) fn mark_finishing(&self) {
        // Ordering: Relaxed: the owner of the token alone writes it. A thread learns of a later act
        // of the step by an operation that orders this store as well.
        let before = self.incarnation.load(Ordering::Relaxed);
        self.incarnation.store(before | FINISHES, Ordering::Relaxed);
    }

    /// Returns whether a notice of a shutdown would be no news: a step has been shown the request
    /// to finish, or the shutdown leaves the process alone.
    pub(crate) fn is_prepared_for_shutdown(&self) -> bool {
        let marks = self.marks();
        let is_left_alone = marks & SHUTDOWN != 0 && marks & CANCELLED == 0;
        // Ordering: Relaxed: reads the store of `mark_finishing`, which comes before this load for
        // each thread that has learnt of a later act of the step.
        let finishes = self.incarnation.load(Ordering::Relaxed) & FINISHES != 0;
        finishes || is_left_alone
    }

    /// Returns whether the process has been told of the shutdown, or is being told.
    #[cfg(feature = "sim")]
    pub(crate) fn is_told(&self) -> bool {
        self.marks() & SHUTDOWN != 0
    }

    /// Marks the process as notified of the shutdown; `true` for the first caller, which must
    /// notify it.
    pub(crate) fn claim_shutdown_notice(&self) -> bool {
        // Ordering: Relaxed, because only the atomicity matters: only one caller sees it unset.
        self.marks.fetch_or(SHUTDOWN, Ordering::Relaxed) & SHUTDOWN == 0
    }

    /// Counts an upgrade: the process has been replaced; by the worker, while `Running`.
    pub(crate) fn count_upgrade(&self) {
        // Ordering: Relaxed: the owner of the token alone writes it, here and in `mark_finishing`.
        let before = self.incarnation.load(Ordering::Relaxed);
        let after = before.wrapping_add(1) & !FINISHES | before & FINISHES;
        // Ordering: Relaxed: the count is for display. `FINISHES` stays as `mark_finishing` has
        // left it.
        self.incarnation.store(after, Ordering::Relaxed);
    }

    fn marks(&self) -> u32 {
        // Ordering: Acquire pairs with the Release of the thread that set the mark.
        self.marks.load(Ordering::Acquire)
    }

    fn enter(&self, phase: u8) {
        // Ordering: Release pairs with the Acquire in `snapshot`. Owners of the token follow one
        // another in the order of their hand-overs.
        self.phase.store(phase, Ordering::Release);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
