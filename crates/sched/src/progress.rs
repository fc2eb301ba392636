//! How far a shutdown has come.

use crate::clock::Deadline;
use crate::forced::Forced;
use crate::stats::WorkerStats;
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::fence;
use ganger_sync::sync::{Mutex, lock};
use std::time::Duration;

/// Flags, set one after the other and never cleared, what the calls of `stop` have asked for, and which processes were
/// forced.
#[derive(Default)]
pub(crate) struct Progress {
    stopping: AtomicBool,
    terminating: AtomicBool,
    halted: AtomicBool,
    /// One of the last two.
    over: AtomicBool,
    asked: Mutex<Option<Asked>>,
    pub(crate) forced: Forced,
}

/// What the calls of `stop` and `begin_stop` have asked for.
struct Asked {
    /// The earliest of their deadlines.
    deadline: Deadline,
    /// What had been counted at the first of these calls.
    before: WorkerStats,
    /// A thread does the work, or is about to.
    is_served: bool,
}

impl Progress {
    /// Submits are refused.
    pub(crate) fn is_stopping(&self) -> bool {
        // Ordering: SeqCst: pairs with the store and the fence in `begin_stopping`; see there.
        self.stopping.load(Ordering::SeqCst)
    }

    /// The deadline has passed.
    pub(crate) fn is_terminating(&self) -> bool {
        // Ordering: SeqCst: pairs with the store and the fence in `begin_terminating`; see there.
        self.terminating.load(Ordering::SeqCst)
    }

    /// Workers return, or have returned.
    pub(crate) fn is_halted(&self) -> bool {
        // Ordering: SeqCst: one order with the queues' changes and the store in `halt`.
        self.halted.load(Ordering::SeqCst)
    }

    /// A process whose turn ends takes no further step: the thread that has just run it ends it.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        // Ordering: SeqCst, as in `is_halted`.
        self.over.load(Ordering::SeqCst)
    }

    pub(crate) fn begin_stopping(&self) {
        // Ordering: SeqCst: one order with the loads in `is_stopping`.
        self.stopping.store(true, Ordering::SeqCst);
        // Pairs with the light fence in `Census::enter`: a submitter counts itself, then reads this;
        // this is set, then the count is read. One of the two sees the other. And with the light fence
        // in `submit`, as in `begin_terminating`.
        fence::heavy();
    }

    pub(crate) fn begin_terminating(&self) {
        // Ordering: SeqCst: one order with the loads in `is_terminating`.
        self.terminating.store(true, Ordering::SeqCst);
        self.over.store(true, Ordering::SeqCst);
        // Pairs with the light fence in `submit`: a submitter makes its process visible, then reads
        // this; this is set, then all visible processes are read. One of the two sees the other.
        fence::heavy();
    }

    pub(crate) fn halt(&self) {
        // Ordering: SeqCst: a process is queued, then this is read; this is set, then the queues
        // are looked at. One of the two sees the other.
        self.over.store(true, Ordering::SeqCst);
        self.halted.store(true, Ordering::SeqCst);
    }

    /// A call asks for a stop by that deadline. `count` says what has been counted so far.
    pub(crate) fn ask(&self, deadline: Deadline, count: impl FnOnce() -> WorkerStats) {
        let mut asked = lock(&self.asked);
        match &mut *asked {
            Some(asked) => asked.deadline = asked.deadline.earlier(deadline),
            None => {
                *asked = Some(Asked {
                    deadline,
                    before: count(),
                    is_served: false,
                });
            }
        }
    }

    /// The caller is to do the work, or to start a thread that does. `false` if there is one.
    #[must_use]
    pub(crate) fn serve(&self) -> bool {
        let mut asked = lock(&self.asked);
        let asked = asked.as_mut();
        asked.is_some_and(|asked| !std::mem::replace(&mut asked.is_served, true))
    }

    /// Lets the deadline pass.
    pub(crate) fn expire(&self) {
        if let Some(asked) = &mut *lock(&self.asked) {
            asked.deadline = Deadline::after(Duration::ZERO);
        }
    }

    /// The earliest deadline that a call has asked for.
    pub(crate) fn deadline(&self) -> Deadline {
        let asked = lock(&self.asked);
        let none = || Deadline::after(Duration::ZERO);
        asked.as_ref().map_or_else(none, |asked| asked.deadline)
    }

    /// What had been counted when a stop was asked for first, if one was.
    pub(crate) fn before(&self) -> Option<WorkerStats> {
        lock(&self.asked).as_ref().map(|asked| asked.before)
    }
}
