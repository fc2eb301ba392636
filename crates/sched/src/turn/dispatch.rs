//! Handing yields to handlers.
//!
//! While a handler is on this thread's stack, what happens to its completer there is caught instead
//! of going through the mailbox: an answer needs no atomic operation then, and when the handler
//! drops its completer and returns an error, or panics, the completion says so rather than that
//! the completer was dropped.

mod conclude;

use self::conclude::{Failure, conclude};
use crate::base::contain::{contain, discard, discard_each};
use crate::base::stats::Counters;
use crate::core::cell::ProcessCell;
use crate::core::cell::Task;
use crate::core::nodes::{self, CommandResult};
use crate::core::owned::{Core, Item};
use crate::core::turns::Turning;
use crate::probe::Probe;
use ganger_mpsc::Single;
use ganger_proc_api::{
    BoxError, Command, CommandError, Completer, Handler, StepOutput, Tag, Yield,
};
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

thread_local! {
    /// The innermost of the handlers' calls on this thread's stack, or null. Without a destructor:
    /// a destructor of another thread-local may drop a completer.
    static CURRENT: Cell<*const Call> = const { Cell::new(ptr::null()) };
}

/// A handler that is on this thread's stack.
struct Call {
    /// The process whose yield it is; only compared.
    cell: *const ProcessCell,
    token: u64,
    answer: Cell<Answer>,
    /// The completer's reference to the process, when it is used or dropped during the call.
    reference: Cell<Option<Task>>,
}

/// What has become of a completer.
#[derive(Default)]
enum Answer {
    /// It has been used: this is the answer.
    Given(Single<Item>),
    /// It has been used, and the answer has gone through the mailbox.
    Sent,
    /// It has been dropped unused.
    Dropped,
    /// It is there, perhaps on another thread.
    #[default]
    Later,
}

/// The handler that is on this thread's stack, if the process and the token are those of its yield.
///
/// # Safety
/// The result is not used after the caller has returned.
#[inline]
unsafe fn current<'a>(task: &Task, token: u64) -> Option<&'a Call> {
    // SAFETY: null, or a call on this thread's stack, whose handler has not returned: `make` puts
    // back what was there before.
    unsafe { CURRENT.get().as_ref() }
        .filter(|call| call.cell == Arc::as_ptr(task) && call.token == token)
}

/// Keeps the completion when it belongs to the handler that is on this thread's stack. Otherwise
/// the completion goes through the mailbox. So does a late answer, behind the items that the
/// handler has already had sent to the process.
#[inline]
pub(crate) fn complete(task: Task, tag: Tag, token: u64, result: CommandResult) {
    let answer = nodes::of_completion(tag, token, result);
    // SAFETY: it is used here only.
    match unsafe { current(&task, token) } {
        Some(call) if !task.state.has_events() => {
            task.shared.probe.answered_inline(task.pid, tag, token);
            call.settle(Answer::Given(answer), task);
        }
        call => {
            if let Some(call) = call {
                call.answer.set(Answer::Sent);
            }
            task.complete_behind(answer);
        }
    }
}

/// Notes that the completer of the handler that is on this thread's stack was dropped. If the
/// completer is another's, the completion goes through the mailbox.
pub(crate) fn complete_dropped(task: Task, tag: Tag, token: u64) {
    // SAFETY: it is used here only.
    if let Some(call) = unsafe { current(&task, token) } {
        return call.settle(Answer::Dropped, task);
    }
    task.complete_behind(nodes::of_completion(tag, token, Err(CommandError::Dropped)));
}

/// Dispatches the yields in `out`, in order. Returns how many answers have come before their
/// handlers returned: these are the last of what is pending.
#[inline]
pub(crate) fn dispatch<'a>(
    place: impl Turning<'a>,
    task: &Task,
    core: &mut Core,
    out: &mut StepOutput,
    counters: &Counters,
) -> usize {
    if let Some(only) = out.take_only_yield() {
        return usize::from(dispatch_one(place, task, core, counters, only));
    }
    if out.yields().is_empty() {
        return 0;
    }
    dispatch_all(place, task, core, out, counters)
}

#[cold]
#[inline(never)]
fn dispatch_all<'a>(
    place: impl Turning<'a>,
    task: &Task,
    core: &mut Core,
    out: &mut StepOutput,
    counters: &Counters,
) -> usize {
    let dispatch_one = |it| dispatch_one(place, task, core, counters, it);
    (out.drain_yields().map(dispatch_one))
        .filter(|&is_answered| is_answered)
        .count()
}

/// Says whether the answer has come before the handler returned.
#[inline(never)]
fn dispatch_one<'a>(
    place: impl Turning<'a>,
    task: &Task,
    core: &mut Core,
    counters: &Counters,
    Yield { command, tag }: Yield,
) -> bool {
    place.count(&counters.yields);
    let token = core.yields.number();
    task.shared.probe.yielded(task.pid, command.id, tag, token);
    // What has arrived before the answer stays before it.
    core.receive(&task.state);
    let sink = (core.cached_self_ref.take()).unwrap_or_else(|| Arc::clone(task));
    let completer = Completer::new(sink, tag, token);
    let call = Call {
        cell: Arc::as_ptr(task),
        token,
        answer: Cell::new(Answer::Later),
        reference: Cell::new(None),
    };
    let id = command.id;
    let Some(handler) = place.handler(id) else {
        call.make_none(command, completer, task, counters);
        core.cached_self_ref = call.reference.take();
        let (ids, failure) = ((id, tag, token), Some(Failure::Unknown));
        return conclude(task, core, ids, Answer::Dropped, failure, counters);
    };
    let returned = call.make(handler, command, completer);
    let answer = call.answer.take();
    core.cached_self_ref = call.reference.take();
    let failure = match returned {
        Ok(Ok(())) => match answer {
            Answer::Given(answer) => {
                core.push_answer(token, answer);
                return true;
            }
            Answer::Sent | Answer::Later => {
                core.yields.insert(token);
                return false;
            }
            Answer::Dropped => None,
        },
        Ok(Err(error)) => Some(Failure::Error(error)),
        Err(message) => Some(Failure::Panic(message)),
    };
    conclude(task, core, (id, tag, token), answer, failure, counters)
}

impl Call {
    /// Calls the handler.
    #[inline]
    fn make(
        &self,
        handler: &dyn Handler,
        command: Command,
        completer: Completer,
    ) -> Result<Result<(), BoxError>, Box<str>> {
        let outer = self.enter();
        let returned = contain(|| handler.handle(command, completer));
        CURRENT.set(outer);
        returned
    }

    /// The completer has been used or dropped, and leaves its reference to the process for the next
    /// one.
    #[inline]
    fn settle(&self, answer: Answer, task: Task) {
        self.answer.set(answer);
        self.reference.set(Some(task));
    }

    /// Makes it the innermost one; returns what was that before.
    #[inline]
    fn enter(&self) -> *const Self {
        CURRENT.replace(self)
    }

    /// What there is to do when there is no handler.
    #[cold]
    #[inline(never)]
    fn make_none(&self, command: Command, completer: Completer, task: &Task, counters: &Counters) {
        let outer = self.enter();
        discard(task.pid, counters, completer);
        CURRENT.set(outer);
        discard_each(task.pid, counters, command.payloads);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
