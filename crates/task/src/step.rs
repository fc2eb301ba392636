//! The step in which a task is polled, for the waits inside of it.
//!
//! **Problem.** A wait takes an event, or yields a command. The events and the output belong to the
//! step, and the poll of a future passes nothing on but a waker.
//!
//! **Rejected.** A queue in each task, into which a step puts its events: a message would be moved
//! twice, and the limit of the mailbox would not count it any more.
//!
//! **Protocol**
//! 1. [`enter`] keeps a pointer to the step in a thread-local variable while the future is polled.
//! 2. [`with`] takes the pointer out, lends the step to a closure if the task is the wait's own,
//!    and puts the pointer back. So a wait inside of that closure finds none.

use crate::waits::{Mark, Waits};
use ganger_proc_api::{CancelReason, Events, StepOutput};
use ganger_sync::{Scoped, scoped};
use std::cell::Cell;
use std::ptr;
use std::task::Waker;

/// How many waits of a step may be ready before the task lets others run. As many as a step is
/// shown new events, unless the scheduler is built otherwise: what a step leaves costs more.
pub(crate) const BUDGET: u32 = 256;

/// What a task wants after a step in which it was not ready; the greatest of several counts.
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
    /// The task's own waker, which its future is polled with.
    pub(crate) waker: &'a Waker,
    pub(crate) then: Then,
    /// How many more waits may be ready.
    pub(crate) budget: u32,
    /// Where the next select begins, as a fraction of 2^64.
    pub(crate) turn: u64,
    /// How many shields the wait is inside of.
    pub(crate) shields: u32,
}

/// The golden ratio and the square root of 2, less 1, of 2^64: the multiples of each are spread
/// evenly, also every other one, every third one, and so on.
const A_STEP: u64 = 0x9E37_79B9_7F4A_7C15;
const A_SELECT: u64 = 0x6A09_E667_F3BC_C909;

/// Where the first select of that step begins.
pub(crate) fn first_turn(step: u64) -> u64 {
    step.wrapping_mul(A_STEP)
}

impl Step<'_, '_> {
    /// Why the task is asked to finish, unless a shield keeps that from the wait.
    pub(crate) fn cancelled(&self) -> Option<&CancelReason> {
        match self.shields {
            0 => self.waits.cancel(),
            _ => None,
        }
    }

    /// Whether the wait with that mark may be ready in this step. A wait that is refused has its
    /// turn in the next step, so none is always behind those that use up the budget. Otherwise the
    /// task steps again.
    pub(crate) fn may_be_ready(&mut self, mark: &mut Mark, waker: &Waker) -> bool {
        if self.budget > 0 || mark.was_refused_before(self.waits.step) {
            return true;
        }
        self.waits.refuse(mark);
        self.step_again(Then::StepAgain, waker);
        false
    }

    /// Which of `count` futures a select polls first: each is as often the first, within a step and
    /// from step to step, also beside other selects.
    pub(crate) fn next_turn(&mut self, count: u64) -> u64 {
        self.turn = self.turn.wrapping_add(A_SELECT);
        ((self.turn >> 32) * count) >> 32
    }

    /// A wait is ready.
    pub(crate) fn spend(&mut self) {
        self.budget = self.budget.saturating_sub(1);
    }

    /// A select is ready whose turn began with that budget: it counts once, with its own waits.
    pub(crate) fn spend_once(&mut self, budget: u32) {
        if self.budget == budget {
            self.spend();
        }
    }

    /// The task is to step again, and to poll the future that is polled with `waker`.
    pub(crate) fn step_again(&mut self, then: Then, waker: &Waker) {
        self.then = self.then.max(then);
        if let Some(waker) = self.foreign(waker) {
            waker.wake_by_ref();
        }
    }

    /// The waker, unless it is the task's own, which needs no call: the step polls anyway.
    pub(crate) fn foreign<'w>(&self, waker: &'w Waker) -> Option<&'w Waker> {
        (!waker.will_wake(self.waker)).then_some(waker)
    }

    /// The future that is polled with `waker` is to be polled when a message or a cancellation has
    /// come. Its wait has that mark.
    pub(crate) fn watch(&mut self, mark: &mut Mark, waker: &Waker) {
        if let Some(waker) = self.foreign(waker) {
            self.waits.watch(mark, waker);
        }
    }
}

thread_local! {
    /// The innermost step of a task on this thread's stack, or null. Without a destructor: those of
    /// other thread-locals may drop waits.
    static CURRENT: Cell<*mut ()> = const { Cell::new(ptr::null_mut()) };
}

/// Calls `poll`, in which [`with`] finds the step.
pub(crate) fn enter<R>(step: &mut Step<'_, '_>, poll: impl FnOnce() -> R) -> R {
    scoped(&CURRENT, ptr::from_mut(step).cast(), poll)
}

/// Calls `f` with the step of the task, if the caller is inside of that.
pub(crate) fn with<R>(task: u64, f: impl FnOnce(&mut Step<'_, '_>) -> R) -> Option<R> {
    let outside = Scoped::set(&CURRENT, ptr::null_mut());
    let current = outside.before();
    // SAFETY: `enter` has made the pointer of a unique borrow, which lasts until `enter` returns
    // and has put another pointer there. It has been taken out, so this is its only use. The
    // lifetimes of what is inside are any that `f` is given, and nothing of it leaves `f`.
    let step = unsafe { current.cast::<Step<'_, '_>>().as_mut() }?;
    (step.task == task).then(|| f(step))
}

/// The wait with that mark is dropped. The waker that it has left is dropped outside of the step,
/// because it is user code.
pub(crate) fn forget(task: u64, mark: &mut Mark) {
    if mark.is_watching() {
        // Outside of its task's step, the task is ending, or the wait has left it.
        drop(with(task, |step| step.waits.forget(mark)));
    }
}

/// As [`with`], for the poll of a wait.
///
/// # Panics
/// When the caller is not inside of the task's step.
#[track_caller]
pub(crate) fn poll_with<R>(task: u64, f: impl FnOnce(&mut Step<'_, '_>) -> R) -> R {
    match with(task, f) {
        Some(result) => result,
        None => used_outside(),
    }
}

/// An executor that catches the panic may say nothing of it, so the report does not rely on that.
#[cold]
#[track_caller]
fn used_outside() -> ! {
    const TEXT: &str = "a wait of a task is used outside of that task: await it in the async \
        function that was given the `Cx`, not on another thread, in another task or in a \
        predicate; for a cancellation there is `cx.cancel_signal()`, which works anywhere";
    tracing::error!(target: "ganger::task", "{TEXT}");
    panic!("{TEXT}");
}
