//! The state of a process: one atomic word.
//!
//! **Problem.** Workers, senders, completers and whoever terminates a process act on it at the same
//! time. It must run on one worker at a time, be queued at most once, and never sleep while an
//! event waits for it.
//!
//! **Rejected.** A lock a process: a sender would wait for a worker that was preempted inside. A
//! separate flag for wake-ups: between the worker's look at the flag and its store of the state a
//! sender could set the one and miss the other.
//!
//! **The run token.** Whoever moves the phase to `Ready` owns the right, and the duty, to queue the
//! process once. The worker that takes it from the queue moves it to `Running` and is then the only
//! one to touch the process itself.
//!
//! **Protocol of the worker**: [`begin`](State::begin); take the events; step; then one of
//! [`requeue`](State::requeue), [`park`](State::park), [`complete`](State::complete).
//! **Protocol of a sender** (completers and cancellers are senders too): 1. put the event into the
//! mailbox; 2. if the mailbox says that a wake-up is owed, [`wake`](State::wake); 3. if that says
//! `Enqueue`, queue the process.
//!
//! **Why no wake-up is lost.** `wake` and `park` are RMWs of one word, so that one comes first. `wake`
//! first: it finds `Running` and sets the flag, and `park` finds the flag and keeps the token. `park`
//! first: `wake` finds `Blocked` or `Idle` and becomes the owner of the token. **Why it runs on one
//! worker.** Only the owner of the token queues it, the queue hands it to one worker, and the
//! token is owned by that worker until it parks.
//!
//! | phase | wakeup | terminate | who owns the token | who leaves it, how |
//! |---|---|---|---|---|
//! | `Ready` | 0 | any | the queue (or the submitter) | the worker that took it: `begin` |
//! | `Running` | any | any | the worker | the worker: `requeue`, `park`, `complete` |
//! | `Blocked`, `Idle` | 0 | 0 | nobody | anybody: `wake`, `terminate` |
//! | `Complete` | any | any | nobody, for ever | nobody |
//!
//! `cancelled` and `shutdown` are only ever set, by anybody, at any time; `incarnation` is counted
//! up by the worker in `Running`.

use ganger_sync::atomic::{AtomicU32, Ordering};

const PHASE: u32 = 0b111;
const WAKEUP: u32 = 1 << 3;
const TERMINATE: u32 = 1 << 4;
const CANCELLED: u32 = 1 << 5;
const SHUTDOWN: u32 = 1 << 6;
const INCARNATION: u32 = 1 << 8;

const READY: u32 = 0;
const RUNNING: u32 = 1;
const BLOCKED: u32 = 2;
const IDLE: u32 = 3;
const COMPLETE: u32 = 4;

/// Where a process is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// What a worker may do with a process that it took from a queue.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Step it.
    Step,
    /// End it without a step.
    Terminate,
}

/// What a sender owes after its wake-up.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// The caller owns the run token: it must queue the process.
    Enqueue,
    /// Nothing: a worker or a queue has the process and will see the event.
    Noted,
    /// Nothing: the process has ended.
    Complete,
}

/// What a worker owes after a step.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Nothing: the process waits for a wake-up, and must not be touched any more.
    Parked,
    /// The worker still owns the run token: it must queue the process.
    Requeue,
    /// The process is to end: the worker must complete it.
    Terminate,
}

/// In which phase a process waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// With commands outstanding.
    Blocked,
    /// Without.
    Idle,
}

/// A copy of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot(u32);

impl Snapshot {
    pub(crate) fn state(self) -> ProcessState {
        match self.0 & PHASE {
            READY => ProcessState::Ready,
            RUNNING => ProcessState::Running,
            BLOCKED => ProcessState::Blocked,
            IDLE => ProcessState::Idle,
            _ => ProcessState::Complete,
        }
    }

    pub(crate) fn is_terminating(self) -> bool {
        self.0 & TERMINATE != 0
    }

    pub(crate) fn is_cancelled(self) -> bool {
        self.0 & CANCELLED != 0
    }

    /// How often the process has been upgraded, modulo 2^24: for display.
    pub(crate) fn incarnation(self) -> u32 {
        self.0 / INCARNATION
    }

    fn in_phase(self, phase: u32) -> u32 {
        (self.0 & !PHASE) | phase
    }
}

/// The word.
pub(crate) struct State(AtomicU32);

impl State {
    /// `Ready`, with the run token in the hands of the caller.
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(READY))
    }

    /// A copy, for display; stale as soon as it is made.
    pub(crate) fn snapshot(&self) -> Snapshot {
        // Ordering: Relaxed, because nothing is read on the strength of it.
        Snapshot(self.0.load(Ordering::Relaxed))
    }

    /// `Ready -> Running`, by the worker that owns the run token.
    pub(crate) fn begin(&self) -> Begin {
        // Ordering: Acquire pairs with the Release of the transition that handed the token over
        // (`wake`, `terminate`, `requeue`, `park`) and, through them, with the last step's end.
        let before = Snapshot(self.0.fetch_add(RUNNING - READY, Ordering::AcqRel));
        debug_assert_eq!(
            before.state(),
            ProcessState::Ready,
            "begun by somebody without the token"
        );
        if before.is_terminating() {
            Begin::Terminate
        } else {
            Begin::Step
        }
    }

    /// An event has been put into the mailbox: `Blocked`, `Idle -> Ready`; `Running` is flagged.
    pub(crate) fn wake(&self) -> Wake {
        self.update(|now| match now.0 & PHASE {
            BLOCKED | IDLE => (now.in_phase(READY), Wake::Enqueue),
            RUNNING => (now.0 | WAKEUP, Wake::Noted),
            READY => (now.0, Wake::Noted),
            _ => (now.0, Wake::Complete),
        })
    }

    /// No further step may start: sets the flag, and wakes the process so that it ends.
    pub(crate) fn terminate(&self) -> Wake {
        self.update(|now| match now.0 & PHASE {
            BLOCKED | IDLE => (now.in_phase(READY) | TERMINATE, Wake::Enqueue),
            RUNNING | READY => (now.0 | TERMINATE, Wake::Noted),
            _ => (now.0, Wake::Complete),
        })
    }

    /// `Running -> Ready`, by the worker, which keeps the run token and must queue the process.
    pub(crate) fn requeue(&self) -> Leave {
        self.update(|now| {
            if now.is_terminating() {
                (now.0, Leave::Terminate)
            } else {
                (now.in_phase(READY) & !WAKEUP, Leave::Requeue)
            }
        })
    }

    /// `Running -> Blocked` or `Idle`, by the worker, unless an event arrived since `begin`.
    pub(crate) fn park(&self, waiting: Waiting) -> Leave {
        let phase = match waiting {
            Waiting::Blocked => BLOCKED,
            Waiting::Idle => IDLE,
        };
        self.update(|now| {
            if now.is_terminating() {
                (now.0, Leave::Terminate)
            } else if now.0 & WAKEUP != 0 {
                (now.in_phase(READY) & !WAKEUP, Leave::Requeue)
            } else {
                (now.in_phase(phase), Leave::Parked)
            }
        })
    }

    /// `Running -> Complete`, by the worker. Returns whether the process was to be terminated.
    pub(crate) fn complete(&self) -> bool {
        // Ordering: Release pairs with the Acquire in `update`: whoever finds `Complete` sees all
        // that the process did. Acquire, because the caller acts on `terminate`.
        let before = Snapshot(self.0.fetch_add(COMPLETE - RUNNING, Ordering::AcqRel));
        debug_assert_eq!(
            before.state(),
            ProcessState::Running,
            "completed by a non-owner"
        );
        before.is_terminating()
    }

    /// Whether it is to take no further step.
    pub(crate) fn is_terminating(&self) -> bool {
        // Ordering: Acquire pairs with the Release in `terminate`.
        Snapshot(self.0.load(Ordering::Acquire)).is_terminating()
    }

    /// Marks the process as cancelled.
    pub(crate) fn cancel(&self) {
        // Ordering: Release pairs with the Acquire in `is_cancelled`.
        self.0.fetch_or(CANCELLED, Ordering::Release);
    }

    /// Whether it has been cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        // Ordering: Acquire pairs with the Release in `cancel`.
        Snapshot(self.0.load(Ordering::Acquire)).is_cancelled()
    }

    /// Marks the process as told of the shutdown; `true` for the first caller, who has to tell it.
    pub(crate) fn claim_shutdown_notice(&self) -> bool {
        // Ordering: Relaxed, because only the atomicity matters: one caller sees it unset.
        self.0.fetch_or(SHUTDOWN, Ordering::Relaxed) & SHUTDOWN == 0
    }

    /// The process has been replaced; by the worker, while `Running`.
    pub(crate) fn count_upgrade(&self) {
        // Ordering: Relaxed: for display only.
        self.0.fetch_add(INCARNATION, Ordering::Relaxed);
    }

    /// One transition: an RMW even where nothing changes, so that what the caller did before
    /// becomes visible to whoever takes the process next.
    fn update<R>(&self, transition: impl Fn(Snapshot) -> (u32, R)) -> R {
        // Ordering: Relaxed: a guess that the exchange below checks.
        let mut now = Snapshot(self.0.load(Ordering::Relaxed));
        loop {
            let (next, result) = transition(now);
            // Ordering: Release publishes the caller's event or step to `begin`; Acquire lets the
            // caller act on what the previous owner did. A failure is a new guess.
            match self
                .0
                .compare_exchange_weak(now.0, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return result,
                Err(actual) => now = Snapshot(actual),
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn in_state(state: ProcessState) -> State {
        let word = State::new();
        let leave = match state {
            ProcessState::Ready => return word,
            _ => word.begin(),
        };
        assert_eq!(leave, Begin::Step);
        match state {
            ProcessState::Blocked => assert_eq!(word.park(Waiting::Blocked), Leave::Parked),
            ProcessState::Idle => assert_eq!(word.park(Waiting::Idle), Leave::Parked),
            ProcessState::Complete => assert!(!word.complete()),
            ProcessState::Ready | ProcessState::Running => {}
        }
        word
    }

    const ALL: [ProcessState; 5] = [
        ProcessState::Ready,
        ProcessState::Running,
        ProcessState::Blocked,
        ProcessState::Idle,
        ProcessState::Complete,
    ];

    #[test]
    fn a_wake_up_hands_the_token_out_when_nobody_has_it() {
        let owed = [
            Wake::Noted,
            Wake::Noted,
            Wake::Enqueue,
            Wake::Enqueue,
            Wake::Complete,
        ];
        for (state, owed) in ALL.into_iter().zip(owed) {
            let word = in_state(state);
            assert_eq!(word.wake(), owed, "wake in {state:?}");
            let word = in_state(state);
            assert_eq!(word.terminate(), owed, "terminate in {state:?}");
            assert_eq!(word.snapshot().is_terminating(), owed != Wake::Complete);
        }
    }

    #[test]
    fn a_wake_up_while_running_keeps_it_from_parking_once() {
        let word = in_state(ProcessState::Running);
        assert_eq!(word.wake(), Wake::Noted);
        assert_eq!(word.park(Waiting::Idle), Leave::Requeue);
        assert_eq!(word.snapshot().state(), ProcessState::Ready);
        assert_eq!(word.begin(), Begin::Step);
        assert_eq!(word.park(Waiting::Blocked), Leave::Parked);
        assert_eq!(word.snapshot().state(), ProcessState::Blocked);
    }

    #[test]
    fn terminate_wins_over_every_way_to_go_on() {
        for leave in [State::requeue as fn(&State) -> Leave, |w: &State| {
            w.park(Waiting::Idle)
        }] {
            let word = in_state(ProcessState::Running);
            assert_eq!(word.terminate(), Wake::Noted);
            assert_eq!(leave(&word), Leave::Terminate);
            assert!(word.complete());
        }
        let word = in_state(ProcessState::Idle);
        assert_eq!(word.terminate(), Wake::Enqueue);
        assert_eq!(word.begin(), Begin::Terminate);
    }

    #[test]
    fn marks_leave_the_phase_alone() {
        for state in ALL {
            let word = in_state(state);
            assert!(!word.is_cancelled());
            word.cancel();
            assert!(word.is_cancelled());
            assert!(word.claim_shutdown_notice());
            assert!(!word.claim_shutdown_notice());
            word.count_upgrade();
            word.count_upgrade();
            assert_eq!(word.snapshot().state(), state);
            assert_eq!(word.snapshot().incarnation(), 2);
        }
    }
}
