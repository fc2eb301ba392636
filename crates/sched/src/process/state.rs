//! The state of a process: its mailbox's word, which says which thread may run it, and its marks.
//!
//! **Problem.** Workers, senders, completers and terminators act on it at the same
//! time. It must run on one worker at a time, be queued at most once, and never sleep while an
//! event waits for it.
//!
//! **Rejected.** A lock a process: a sender would wait for a worker that was preempted inside. A
//! separate flag for wake-ups: between the worker's look at the flag and its store of the state a
//! sender could set the one and miss the other. A state word of its own beside the mailbox's: each
//! message then costs four read-modify-writes in place of three, and the two words have to be kept
//! in step.
//!
//! **The run token** is the right, and the duty, to queue the process once. The worker that takes
//! it from the queue is the only one to touch the process itself, until it parks.
//!
//! **Protocol of the worker**: [`begin`](State::begin); [`drain`](State::drain); step; then one of
//! [`requeue`](State::requeue), [`park`](State::park), [`complete`](State::complete).
//! **Protocol of a sender** (completers are senders too): [`unpark`](State::unpark): when the
//! process waits, the sender owns the token, puts the event where the worker keeps what it has
//! drained, and queues the process. Else [`push`](State::push), and queue the process when that
//! says so. **The sender of a system event** (a canceller is one) counts it and pushes it, whether
//! the process waits or not.
//! **A terminator** marks it, and then pushes something that says nothing, so that it does
//! not go on sleeping.
//!
//! **System events** overtake what waits in the mailbox, which keeps arrival order alone. Their
//! sender counts before it pushes ([`push_system`](State::push_system)); the worker drains, and
//! then reads the count ([`may_hold_system`](State::may_hold_system)): the drain that takes such an
//! event out has acquired the push, and with it the count, which only the worker takes back, for
//! what a step has been given ([`take_system`](State::take_system)). So each of them is found as it
//! leaves the mailbox, and what was drained before is never gone through again. Rejected: a mark in
//! place of the count. Cleared by the worker while another sender is between its mark and its push,
//! it would leave that sender's event among the others; set after the push, it comes when the event
//! may be among the others already.
//!
//! **Why no wake-up is lost.** The wakeup flag is that the mailbox is not empty. The worker leaves
//! the process alone by the very exchange of the mailbox's word that finds it empty (`park`), and
//! the push that displaces the park has the token: see [`Queue`]. **Why it runs on one worker.**
//! Only the owner of the token queues it, the queue hands it to one worker, and the token is that
//! worker's until it parks.
//!
//! | phase | mailbox | owner of the token | left by, how |
//! |---|---|---|---|
//! | `Ready` | any but parked | the queue (or the submitter) | the worker that took it: `begin` |
//! | `Running` | any but parked | the worker | the worker: `requeue`, `park`, `complete` |
//! | `Blocked`, `Idle` | parked | none | any thread: `unpark`, `push`, `terminate` |
//! | `Complete` | closed | none, for ever | none |
//!
//! **A process that ends while it is terminated.** The worker closes the mailbox, and then marks
//! the process as `ended`. A terminator marks it as `terminate`. Both are read-modify-writes of one
//! word, so one of the two comes first, and each learns which. A terminator that comes first has
//! ended the process, also when the mailbox is closed already. A terminator that comes second
//! reports that the process has ended, and finds the mailbox closed. A terminator that finds the
//! mailbox closed beforehand marks nothing. Rejected: to mark, then to close. A terminator would be
//! told that the process has ended while others still see it run.
//!
//! **A terminator pushes a nudge unless one has been pushed**: one wakes the process, and more
//! would take memory until a long step is over. A terminator says so after its push, so that no
//! terminator relies on one that is suspended before its own. Rejected: that the first alone
//! pushes. While it is suspended, the process would sleep, although others terminate it.
//!
//! **A look** at what belongs to the owner of the token, while the process waits: the reader takes
//! the token as a sender does, and parks the process again as a worker does. What comes meanwhile
//! is pushed behind nothing, so that its sender owes no wake-up: the reader finds it when it parks,
//! and queues the process.
//!
//! **A waker** wants one step more, and pushes no event. When the process waits, the waker takes
//! the run token, as a sender does. Else it sets `WOKEN`, pushes an item that says so, and sets
//! `IS_IN`. A waker that finds both set before does no more. The worker clears both when it has
//! taken such an item out, and steps after that. So a process that runs has as many such items as
//! wakers are at it at once, however often these wake it. Proof sketch: the worker's exchange comes
//! after a waker's, and then the step sees what the waker did before. Or it comes before: then
//! `WOKEN` has been set since, and the waker that has set it has an item that is still to be taken
//! out. Rejected: `IS_IN` alone. A waker may set it after the worker has taken its item out, and
//! the next waker would rely on nothing.
//!
//! The phase is for display: the owner of the token writes it, a moment before the process
//! parks and a moment after it is woken. `Complete` is no phase of its own, but the mailbox being
//! closed: a thread that sees a process as ended can do nothing to it.
//!
//! | mark | set by | decides |
//! |---|---|---|
//! | `terminate` | any thread, before a nudge is pushed | that no further step starts |
//! | `nudged` | a terminator, after its push | that the next one pushes no nudge |
//! | `ended` | the worker, after the close | whether a `terminate` has come in time: before it |
//! | `cancelled`, `shutdown` | any thread | nothing here |
//! | `takes_back` | the worker | nothing here: it has taken yields back |
//! | `watched` | any thread, once its waker is in a table | whether `cancel` and the end wake |
//! | `finishes` | the worker | nothing here: a step has been shown a cancel event |
//! | `SYSTEM` upwards: a count | senders, before they push; worker | lane; look for system events |
//!
//! | `WOKEN` | `IS_IN` | what a waker finds in `wakes` |
//! |---|---|---|
//! | no | no | no waker before it that counts: it pushes |
//! | yes | no | a waker that may be suspended before its push: it pushes as well |
//! | no | yes | a waker was late with `IS_IN`, and its item is gone: it pushes |
//! | yes | yes | an item is there or on its way: it does nothing |

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
const FINISHES: u32 = 1 << 7;
/// One system event: the bits from here on are their count. 2^24 events that no step has taken
/// would wait in 1 GiB of nodes.
const SYSTEM: u32 = 1 << 8;

const READY: u8 = 0;
const RUNNING: u8 = 1;
const BLOCKED: u8 = 2;
const IDLE: u8 = 3;

const WOKEN: u8 = 1;
const IS_IN: u8 = 1 << 1;

/// Where a process is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProcessState {
    /// It waits in a queue for a worker.
    Ready,
    /// A worker is inside its step, or dispatches what the step yielded.
    Running,
    /// It waits, and at least one of its commands has not completed.
    Blocked,
    /// It waits, and has no command outstanding.
    Idle,
    /// It has ended.
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

    /// How often the process has been upgraded, modulo 2^16.
    pub(crate) fn incarnation(self) -> u32 {
        self.incarnation.into()
    }
}

/// The state of a process whose mailbox holds items of the type `T`.
pub(crate) struct State<T> {
    mailbox: Queue<T>,
    /// Marks, set by any thread and never cleared; above them the count of system events that are
    /// accepted, or about to be, and that no step has been given.
    marks: AtomicU32,
    /// Written by the owner of the run token alone.
    phase: AtomicU8,
    /// Set by wakers, cleared by the owner of the run token.
    wakes: AtomicU8,
    /// Written by the owner of the run token alone; for display.
    incarnation: AtomicU16,
}

impl<T> State<T> {
    /// `Ready`, and not queued yet: the caller owns the run token.
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
        // Ordering: Acquire pairs with the Release in `enter`: a thread that reads a phase
        // sees what was done before it.
        let phase = self.phase.load(Ordering::Acquire);
        Snapshot {
            state: match phase {
                _ if self.is_closed() => ProcessState::Complete,
                READY => ProcessState::Ready,
                RUNNING => ProcessState::Running,
                BLOCKED => ProcessState::Blocked,
                _ => ProcessState::Idle,
            },
            // Ordering: Relaxed: for display only.
            incarnation: self.incarnation.load(Ordering::Relaxed),
            marks: self.marks(),
        }
    }

    /// `Ready -> Running`, by the worker that has taken the process from a queue.
    pub(crate) fn begin(&self) -> Begin {
        self.enter(RUNNING);
        if self.is_terminating() {
            Begin::Terminate
        } else {
            Begin::Step
        }
    }

    /// Whether events wait in the mailbox. For the owner of the token; for others a guess.
    pub(crate) fn has_events(&self) -> bool {
        !self.mailbox.is_empty()
    }

    /// Takes what waits in the mailbox. For the owner of the token.
    pub(crate) fn drain(&self) -> Batch<T> {
        self.mailbox.drain()
    }

    /// Whether a system event may be among what has been drained so far. For the owner of the
    /// token, after a drain.
    pub(crate) fn may_hold_system(&self) -> bool {
        // Ordering: Relaxed, because the drain's Acquire orders it: a sender counts before it
        // pushes.
        self.marks.load(Ordering::Relaxed) >= SYSTEM
    }

    /// How many system events are accepted, or about to be, and given to no step yet.
    pub(crate) fn system_events(&self) -> usize {
        (self.marks() / SYSTEM) as usize
    }

    /// So many system events have been given to a step, or carried out. For the owner of the token.
    pub(crate) fn take_system(&self, count: usize) {
        // As far as the count goes, so do the events.
        let count = u32::try_from(count).unwrap_or(u32::MAX / SYSTEM);
        // Ordering: Relaxed: a count; the mailbox itself orders the events.
        let before = self.marks.fetch_sub(count * SYSTEM, Ordering::Relaxed);
        debug_assert!(before / SYSTEM >= count, "took more than was counted");
    }

    /// Whether it is to be terminated, or a system event waits or is on its way: time to end the
    /// turn.
    pub(crate) fn must_leave(&self) -> bool {
        self.marks() & !(NUDGED | ENDED | CANCELLED | SHUTDOWN | TAKES_BACK | WATCHED | FINISHES)
            != 0
    }

    /// Whether it accepts no events any more, because it has ended.
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

    /// Takes the run token of a process that waits, for a look at what belongs to its owner. The
    /// phase stays, so that no reader takes the process for ready. `true`: the caller owns the
    /// token, and calls [`end_look`](Self::end_look).
    #[cfg(any(test, feature = "observe"))]
    pub(crate) fn begin_look(&self) -> bool {
        self.mailbox.is_parked() && self.mailbox.cancel_park()
    }

    /// The look is over, and the process waits on as before, unless something has come meanwhile.
    /// Then the caller still owns the token and must queue the process, also to have it ended.
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

    /// As [`push`](Self::push), for items that are in nodes already.
    pub(crate) fn push_batch(&self, items: Batch<T>) -> Result<Wake, Batch<T>> {
        self.wake(self.mailbox.push_batch(items))
    }

    /// Puts an item that is to be pushed here into its node.
    pub(crate) fn single(&self, item: T) -> Single<T> {
        self.mailbox.single(item)
    }

    /// As [`push`](Self::push), for an item that is in its node already.
    pub(crate) fn push_single(&self, item: Single<T>) -> Result<Wake, Single<T>> {
        self.wake(self.mailbox.push_single(item))
    }

    /// What a push owes.
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

    /// As [`push`](Self::push), for an event that overtakes those that are none of the system.
    ///
    /// # Errors
    /// Gives the event back when the process has ended.
    pub(crate) fn push_system(&self, item: T) -> Result<Wake, T> {
        // Ordering: Relaxed, because the Release of the push that follows orders it before the
        // drain that takes the item. An ended process is not asked for its count any more.
        self.marks.fetch_add(SYSTEM, Ordering::Relaxed);
        self.push(item)
    }

    /// Lets no further step start: sets the mark, and wakes the process by `nudge`, so that it
    /// ends. None when the process has ended already, for another reason or another terminator.
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
        // A mailbox that has been closed meanwhile needs no nudge: the mark came before the end.
        let wake = self.push(nudge).unwrap_or(Wake::Noted);
        // Ordering: Relaxed: a terminator that reads it does no more, and the push orders the rest.
        self.marks.fetch_or(NUDGED, Ordering::Relaxed);
        Some(wake)
    }

    /// Has a process that does not wait take one step more, by `item`. For a waker, after
    /// [`unpark`](Self::unpark).
    pub(crate) fn wake_behind(&self, item: impl FnOnce() -> T) -> Wake {
        // Ordering: Release pairs with the Acquire in `take_wake`: the step sees what each waker
        // did before, also those that push nothing.
        let before = self.wakes.fetch_or(WOKEN, Ordering::Release);
        if before == WOKEN | IS_IN {
            return Wake::Noted;
        }
        // A process that has ended takes no step.
        let wake = self.push(item()).unwrap_or(Wake::Noted);
        // Ordering: Relaxed: a waker that reads it does no more, and the push orders the rest.
        self.wakes.fetch_or(IS_IN, Ordering::Relaxed);
        wake
    }

    /// What wakers have pushed has been taken out, and a step follows. For the owner of the token.
    pub(crate) fn take_wake(&self) {
        // Ordering: Acquire pairs with the Release in `wake_behind`. A read-modify-write, so that
        // what others have set in between goes on the chain of releases.
        self.wakes.fetch_and(0, Ordering::Acquire);
    }

    /// What a terminator does first: sets the mark. Returns the marks before.
    pub(crate) fn mark_terminated(&self) -> u32 {
        // Ordering: Release pairs with the Acquire in `marks` and in `complete`: the worker that
        // ends the process sees what each terminator did before. Acquire pairs with the Release in
        // `complete`: a terminator that comes after the end finds the mailbox closed.
        self.marks.fetch_or(TERMINATE, Ordering::AcqRel)
    }

    /// `Running -> Ready`, by the worker, which keeps the run token and must queue the process.
    pub(crate) fn requeue(&self) -> Leave {
        let marks = self.marks();
        if marks & TERMINATE != 0 {
            return Leave::Terminate;
        }
        self.enter(READY);
        Self::lane(marks)
    }

    /// `Running -> Blocked` or `Idle`, by the worker, unless an event waits.
    pub(crate) fn park(&self, waiting: Waiting) -> Leave {
        // A terminator that comes after this look pushes its nudge after it.
        if self.is_terminating() {
            return Leave::Terminate;
        }
        // An exchange that is bound to fail costs as much as one that does not.
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

    /// How a process with these marks is queued again.
    fn lane(marks: u32) -> Leave {
        if marks >= SYSTEM {
            Leave::RequeueUrgent
        } else {
            Leave::Requeue
        }
    }

    /// `Running -> Complete`, by the worker. Returns whether the process was terminated, and the
    /// items that no step will see.
    pub(crate) fn complete(&self) -> (bool, Batch<T>) {
        debug_assert_eq!(
            self.snapshot().state(),
            ProcessState::Running,
            "completed by a non-owner"
        );
        let rest = self.mailbox.close().batch;
        // Ordering: Acquire pairs with the Release in `terminate`, of all terminators that came
        // before. Release pairs with the Acquire there: a terminator that comes later finds the
        // mailbox closed.
        let before = self.marks.fetch_or(ENDED, Ordering::AcqRel);
        (before & TERMINATE != 0, rest)
    }

    /// Whether it is to take no further step.
    pub(crate) fn is_terminating(&self) -> bool {
        self.marks() & TERMINATE != 0
    }

    /// Whether a step of it that waits is to wait no longer: the process is to be terminated, or no
    /// step has been told yet that it is cancelled.
    pub(crate) fn is_called_back(&self) -> bool {
        let marks = self.marks();
        let is_to_be_told = marks & CANCELLED != 0 && marks >= SYSTEM;
        (marks & TERMINATE != 0 || is_to_be_told) && !self.is_closed()
    }

    /// Marks the process as cancelled. Returns whether it is watched: then the caller wakes what
    /// watches it.
    pub(crate) fn cancel(&self) -> bool {
        // Ordering: Release pairs with the Acquire in `marks` and `watch`. Acquire pairs with the
        // Release in `watch`: the canceller finds the waker in the table.
        self.marks.fetch_or(CANCELLED, Ordering::AcqRel) & WATCHED != 0
    }

    /// Marks the process as watched, by a thread that has put its waker into the table. Returns
    /// whether there is nothing to wait for: the process has been asked to finish, or has ended.
    pub(crate) fn watch(&self) -> bool {
        // Ordering: Release pairs with the Acquire in `cancel`, and in `complete`, for
        // `is_watched`. Acquire pairs with the Release in them: the watcher sees what they did
        // before.
        let before = self.marks.fetch_or(WATCHED, Ordering::AcqRel);
        before & (CANCELLED | TERMINATE | ENDED) != 0
    }

    /// Whether the process has been watched. After [`complete`](Self::complete): a watcher that is
    /// not seen here has seen the end.
    pub(crate) fn is_watched(&self) -> bool {
        self.marks() & WATCHED != 0
    }

    /// Whether it has been cancelled, is to take no further step, or has ended. Once true, it stays
    /// true.
    pub(crate) fn is_unwanted(&self) -> bool {
        self.marks() & (CANCELLED | TERMINATE) != 0 || self.is_closed()
    }

    /// Marks the process as one that has taken yields back. For the owner of the token.
    pub(crate) fn mark_taking_back(&self) {
        // Ordering: Relaxed: a lock orders what the mark is about.
        self.marks.fetch_or(TAKES_BACK, Ordering::Relaxed);
    }

    /// Whether it may have taken yields back.
    pub(crate) fn takes_back(&self) -> bool {
        self.marks() & TAKES_BACK != 0
    }

    /// A step is shown that the process is to finish. For the owner of the token.
    pub(crate) fn mark_finishing(&self) {
        // Ordering: Relaxed: what the step does after it comes after it, for each thread that
        // learns of that.
        self.marks.fetch_or(FINISHES, Ordering::Relaxed);
    }

    /// Whether no word of a shutdown is still to come as a surprise: a step has been shown that the
    /// process is to finish, or the shutdown leaves it alone.
    pub(crate) fn is_prepared_for_shutdown(&self) -> bool {
        let marks = self.marks();
        let is_left_alone = marks & SHUTDOWN != 0 && marks & CANCELLED == 0;
        marks & FINISHES != 0 || is_left_alone
    }

    /// Whether the process has been told of the shutdown, or is being told.
    #[cfg(feature = "sim")]
    pub(crate) fn is_told(&self) -> bool {
        self.marks() & SHUTDOWN != 0
    }

    /// Marks the process as told of the shutdown; `true` for the first caller, which has to tell
    /// it.
    pub(crate) fn claim_shutdown_notice(&self) -> bool {
        // Ordering: Relaxed, because only the atomicity matters: one caller sees it unset.
        self.marks.fetch_or(SHUTDOWN, Ordering::Relaxed) & SHUTDOWN == 0
    }

    /// The process has been replaced; by the worker, while `Running`.
    pub(crate) fn count_upgrade(&self) {
        // Ordering: Relaxed: for display only.
        let before = self.incarnation.load(Ordering::Relaxed);
        self.incarnation
            .store(before.wrapping_add(1), Ordering::Relaxed);
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
