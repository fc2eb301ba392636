//! The present step of a task, for its waits.
//!
//! **Problem.** A wait takes an event, or yields a command. The events and the output belong to the
//! step, and the poll of a future passes only a waker on.
//!
//! **Rejected.** A queue in each task, into which a step puts its events: a message would be moved
//! twice, and the limit of the mailbox would not count it any more.
//!
//! **Protocol**
//! 1. [`enter`] keeps a pointer to the step in a thread-local variable while the future is polled.
//! 2. [`with`] takes the pointer out, lends the step to a closure if the step belongs to the wait's
//!    task, and puts the pointer back. So a wait inside of the closure finds no step.

use crate::waits::{Mark, Waits};
use ganger_proc_api::{CancelReason, CommandError, Events, Payload, StepOutput, Tag};
use ganger_sync::{Scoped, scoped};
use std::cell::Cell;
use std::ptr;
use std::task::Waker;

/// The most ready waits of a step before the task lets other processes run. The default batch of
/// events of a step has the same size, since events left by a step cost more.
pub(crate) const BUDGET: u32 = 256;

/// The wish of a task after a step without a result. The greatest wish counts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Then {
    #[default]
    Wait,
    StepAgain,
    YieldNow,
}

/// A step of a task.
pub(crate) struct Step<'a, 'b> {
    /// The id of the task.
    pub(crate) task: u64,
    pub(crate) events: &'a mut Events<'b>,
    pub(crate) out: &'a mut StepOutput,
    pub(crate) waits: &'a mut Waits,
    /// The task's own waker, for the poll of its future.
    pub(crate) waker: &'a Waker,
    pub(crate) then: Then,
    /// The number of further ready waits.
    pub(crate) budget: u32,
    /// The start of the next select, as a fraction of 2^64.
    pub(crate) turn: u64,
    /// The number of shields around the wait.
    pub(crate) shields: u32,
}

/// The golden ratio and the square root of 2, less 1, of 2^64. The multiples of each are spread
/// evenly, also every second multiple, every third multiple, and so on.
const A_STEP: u64 = 0x9E37_79B9_7F4A_7C15;
const A_SELECT: u64 = 0x6A09_E667_F3BC_C909;

/// Returns the start of the first select of a step.
pub(crate) fn first_turn(step: u64) -> u64 {
    step.wrapping_mul(A_STEP)
}

impl Step<'_, '_> {
    /// Returns the reason of the cancellation, unless a shield is around the wait.
    pub(crate) fn cancelled(&self) -> Option<&CancelReason> {
        match self.shields {
            0 => self.waits.cancel(),
            _ => None,
        }
    }

    /// Returns whether a wait may be ready in this step, and otherwise refuses the wait. A refused
    /// wait has its turn in the next step, so the budget never starves a wait. After a refusal the
    /// task steps again.
    pub(crate) fn may_be_ready(&mut self, mark: &mut Mark, waker: &Waker) -> bool {
        if self.budget > 0 || mark.was_refused_before(self.waits.step) {
            return true;
        }
        self.waits.refuse(mark);
        self.step_again(Then::StepAgain, waker);
        false
    }

    /// Returns the index of the future, of `count`, with which a select begins its poll. Each
    /// future is equally often the first, within a step and from step to step, also with several
    /// selects.
    pub(crate) fn next_turn(&mut self, count: u64) -> u64 {
        self.turn = self.turn.wrapping_add(A_SELECT);
        ((self.turn >> 32) * count) >> 32
    }

    /// Puts the answer to the lone wait with this tag into `place`, if it is the step's only event.
    /// The wait is ready then.
    #[inline]
    pub(crate) fn take_here(
        &mut self,
        tag: Tag,
        place: &mut Result<Payload, CommandError>,
    ) -> bool {
        let is_here = self.waits.take_here(tag, self.events, place);
        if is_here {
            self.spend();
        }
        is_here
    }

    /// Counts a ready wait against the budget.
    pub(crate) fn spend(&mut self) {
        self.budget = self.budget.saturating_sub(1);
    }

    /// Counts a ready select that began with this budget: the select and its own waits count once.
    pub(crate) fn spend_once(&mut self, budget: u32) {
        if self.budget == budget {
            self.spend();
        }
    }

    /// Has the task step again, and poll the future of `waker`.
    pub(crate) fn step_again(&mut self, then: Then, waker: &Waker) {
        self.then = self.then.max(then);
        if let Some(waker) = self.foreign(waker) {
            waker.wake_by_ref();
        }
    }

    /// Returns the waker, unless it is the task's own: the step polls anyway. Mostly the task
    /// passes its own waker on by reference: the equal address spares a look inside.
    #[inline]
    pub(crate) fn foreign<'w>(&self, waker: &'w Waker) -> Option<&'w Waker> {
        let is_own = ptr::eq(waker, self.waker) || waker.will_wake(self.waker);
        (!is_own).then_some(waker)
    }

    /// Has the future of `waker` polled after a message or a cancellation. `mark` is the wait's
    /// mark.
    #[inline]
    pub(crate) fn watch(&mut self, mark: &mut Mark, waker: &Waker) {
        if let Some(waker) = self.foreign(waker) {
            self.waits.watch(mark, waker);
        }
    }
}

thread_local! {
    /// The innermost step of a task on this thread's stack, or null. The variable has no
    /// destructor, since destructors of other thread-locals may drop waits.
    static CURRENT: Cell<*mut ()> = const { Cell::new(ptr::null_mut()) };
}

/// Calls `poll`; inside, [`with`] finds the step.
pub(crate) fn enter<R>(step: &mut Step<'_, '_>, poll: impl FnOnce() -> R) -> R {
    scoped(&CURRENT, ptr::from_mut(step).cast(), poll)
}

/// Calls `f` with the step of the task, if the caller is inside of the step.
pub(crate) fn with<R>(task: u64, f: impl FnOnce(&mut Step<'_, '_>) -> R) -> Option<R> {
    let outside = Scoped::set(&CURRENT, ptr::null_mut());
    let current = outside.before();
    // SAFETY: `enter` has made the pointer of a unique borrow. Before the borrow ends, `enter` puts
    // the earlier pointer back. The pointer has been taken out, so this is its only use. `f`
    // accepts a step of any lifetimes, so no reference into the step leaves `f`.
    let step = unsafe { current.cast::<Step<'_, '_>>().as_mut() }?;
    (step.task == task).then(|| f(step))
}

/// Forgets a dropped wait. Its waker is user code, and so is dropped outside of the step.
pub(crate) fn forget(task: u64, mark: &mut Mark) {
    if mark.is_watching() {
        // Outside of the task's step: the task is ending, or the wait has left the task.
        drop(with(task, |step| step.waits.forget(mark)));
    }
}

/// Calls `f` as [`with`] does, for the poll of a wait.
///
/// # Panics
/// Outside of the task's step.
#[track_caller]
pub(crate) fn poll_with<R>(task: u64, f: impl FnOnce(&mut Step<'_, '_>) -> R) -> R {
    match with(task, f) {
        Some(result) => result,
        None => used_outside(),
    }
}

/// Panics, and reports the misuse first: an executor may catch the panic silently.
#[cold]
#[track_caller]
fn used_outside() -> ! {
    const TEXT: &str = "a wait of a task is used outside of that task: await it in the async \
        function that was given the `Cx`, not on another thread, in another task or in a \
        predicate; for a cancellation there is `cx.cancel_signal()`, which works anywhere";
    tracing::error!(target: "ganger::task", "{TEXT}");
    panic!("{TEXT}");
}
