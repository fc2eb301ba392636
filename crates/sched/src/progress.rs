//! How far a shutdown has come, and who is inside `stop`.

use crate::clock::Deadline;
use crate::counted;
use crate::forced::Forced;
use crate::local;
use crate::shared::Shared;
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::fence;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Flags, set one after the other and never cleared, the calls of `stop`, and who was forced.
#[derive(Default)]
pub(crate) struct Progress {
    stopping: AtomicBool,
    terminating: AtomicBool,
    halted: AtomicBool,
    /// One of the last two.
    over: AtomicBool,
    callers: Mutex<Callers>,
    pub(crate) forced: Forced,
}

#[derive(Default)]
struct Callers {
    /// The earliest of their deadlines.
    deadline: Option<Deadline>,
    inside: Vec<Caller>,
    next_number: u64,
}

/// A call of `stop` that has not returned.
#[derive(Clone, Copy)]
pub(crate) struct Caller {
    number: u64,
    /// The thread that it is called on is one of the scheduler's.
    pub(crate) is_own: bool,
    /// Turns and submissions that can't end before it returns.
    pub(crate) turns: usize,
    pub(crate) submissions: usize,
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

    /// A process whose turn ends takes no further step: whoever has just run it ends it.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        // Ordering: SeqCst, as `is_halted`.
        self.over.load(Ordering::SeqCst)
    }

    pub(crate) fn begin_stopping(&self) {
        // Ordering: SeqCst: one order with the loads in `is_stopping`.
        self.stopping.store(true, Ordering::SeqCst);
        // Pairs with the light fence in `ShardedCount::enter`: a submitter counts itself, then reads this;
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

    /// Adds a call of `stop` on this thread, until the guard is dropped.
    pub(crate) fn enter(&self, shared: &Shared, deadline: Duration) -> Inside<'_> {
        let deadline = Deadline::after(deadline);
        let (turns, submissions) = local::held(shared);
        let mut callers = self.callers();
        let number = callers.next_number;
        callers.next_number += 1;
        callers.inside.push(Caller {
            number,
            is_own: counted::is_own(shared),
            turns,
            submissions,
        });
        let earliest = callers
            .deadline
            .map_or(deadline, |other| other.earlier(deadline));
        callers.deadline = Some(earliest);
        Inside {
            progress: self,
            number,
        }
    }

    /// Lets the deadline pass.
    pub(crate) fn expire(&self) {
        self.callers().deadline = Some(Deadline::after(Duration::ZERO));
    }

    /// The earliest deadline of all calls.
    pub(crate) fn deadline(&self) -> Deadline {
        self.callers()
            .deadline
            .unwrap_or_else(|| Deadline::after(Duration::ZERO))
    }

    /// The sum of something over all calls.
    pub(crate) fn sum(&self, of: impl Fn(&Caller) -> usize) -> usize {
        self.callers().inside.iter().map(of).sum()
    }

    /// What counts as live and waits for a `stop` to return.
    pub(crate) fn held(&self) -> usize {
        self.sum(|caller| caller.turns + caller.submissions)
    }

    fn callers(&self) -> MutexGuard<'_, Callers> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Progress::enter`].
pub(crate) struct Inside<'a> {
    progress: &'a Progress,
    number: u64,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut callers = self.progress.callers();
        callers.inside.retain(|caller| caller.number != self.number);
    }
}
