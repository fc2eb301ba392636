//! Handing yields to handlers.
//!
//! While a handler is on this thread's stack, what happens to its completer there is caught instead
//! of going through the mailbox: an answer needs no atomic operation then, and when the handler
//! drops its completer and returns an error, or panics, the completion says so rather than that
//! the completer was dropped.

use crate::Task;
use crate::cell::ProcessCell;
use crate::contain::{contain, discard, discard_each, log, text_of};
use crate::core::{Core, Item};
use crate::stats::Counters;
use ganger_proc_api::{Command, CommandError, Completer, Completion, StepOutput, Yield};
use std::cell::Cell;
use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;
use tracing::Level;

thread_local! {
    /// The innermost of the handlers' calls on this thread's stack, or null. Without a destructor: a
    /// destructor of another thread-local may drop a completer.
    static CURRENT: Cell<*const Call> = const { Cell::new(ptr::null()) };
}

/// A handler that is on this thread's stack.
struct Call {
    /// The process whose yield it is; only compared.
    cell: *const ProcessCell,
    token: u64,
    answer: Cell<Option<Caught>>,
}

/// A completion that came while its handler was on the stack.
struct Caught {
    completion: Completion,
    /// The reference to the process that came with it.
    task: Task,
}

/// Keeps the completion when it belongs to the handler that is on this thread's stack; else gives it
/// back. An answer that comes when the handler has already had something else sent to the process goes
/// through the mailbox, behind that.
pub(crate) fn intercept(
    task: Task,
    token: u64,
    completion: Completion,
) -> Result<(), (Task, Completion)> {
    // SAFETY: null, or a call on this thread's stack: `call` puts back what was there before.
    match unsafe { CURRENT.get().as_ref() } {
        Some(call)
            if call.cell == Arc::as_ptr(&task)
                && call.token == token
                && (is_dropped(&completion) || !task.state.has_events()) =>
        {
            call.answer.set(Some(Caught { completion, task }));
            Ok(())
        }
        _ => Err((task, completion)),
    }
}

/// What a dispatch leaves to the turn that it is a part of.
#[derive(Default)]
pub(crate) struct Inline {
    /// The completions that came before their handlers returned, with nothing before them in the
    /// mailbox; and the numbers of their yields.
    pub(crate) completions: VecDeque<(u64, Completion)>,
    /// A reference to the process that its next completer may have: to count another one costs
    /// more than a short handler.
    spare: Option<Task>,
}

impl Inline {
    /// The turn is over: puts completions that no step has seen in front of what arrived later.
    #[inline]
    pub(crate) fn end(&mut self, core: &mut Core) {
        while let Some((token, completion)) = self.completions.pop_back() {
            core.pending
                .push_front(Item::Completion { token, completion });
        }
        self.spare = None;
    }
}

/// Dispatches the yields in `out`, in order.
pub(crate) fn dispatch(
    task: &Task,
    core: &mut Core,
    out: &mut StepOutput,
    inline: &mut Inline,
    counters: &Counters,
) {
    if out.yields().is_empty() {
        return;
    }
    for Yield { command, tag } in out.drain_yields() {
        counters.yields.bump();
        let token = core.yields.begin();
        // What has arrived before its answer stays before it.
        core.receive(&task.state);
        let sink = inline.spare.take().unwrap_or_else(|| Arc::clone(task));
        let completer = Completer::new(sink, tag, token);
        let called = call(task, token, command, completer, &mut inline.spare, counters);
        if let Some((result, is_answer)) = called {
            let completion = Completion { tag, result };
            if !is_answer {
                // It happened when the handler returned, after whatever that has sent.
                core.receive(&task.state);
            }
            if core.pending.is_empty() {
                inline.completions.push_back((token, completion));
            } else {
                core.pending
                    .push_back(Item::Completion { token, completion });
            }
        }
    }
}

type CommandResult = Result<ganger_proc_api::Payload, CommandError>;

/// Calls the handler. Returns the completion if there is one already, and whether it is an answer, which
/// came before all that is in the mailbox.
fn call(
    task: &Task,
    token: u64,
    command: Command,
    completer: Completer,
    spare: &mut Option<Task>,
    counters: &Counters,
) -> Option<(CommandResult, bool)> {
    let id = command.id;
    let handler = task.shared.commands.get(id);
    let call = Call {
        cell: Arc::as_ptr(task),
        token,
        answer: Cell::new(None),
    };
    let outer = CURRENT.replace(&raw const call);
    let returned = contain(|| match handler {
        Some(handler) => handler
            .handle(command, completer)
            .map_err(CommandError::Failed),
        None => {
            drop(completer);
            discard_each(counters, command.payloads);
            Err(CommandError::Unknown(id))
        }
    });
    CURRENT.set(outer);
    let caught = call.answer.into_inner().map(|caught| {
        *spare = Some(caught.task);
        caught.completion
    });

    let answered = match caught {
        Some(completion) if is_dropped(&completion) => Answer::Dropped,
        Some(completion) => Answer::Given(completion.result),
        None => Answer::Later,
    };
    let error = match returned {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error),
        Err(message) => {
            counters.panics.bump();
            log(Level::ERROR, || {
                tracing::error!(
                    target: "ganger::sched", pid = %task.pid, command = %id, %message,
                    "contained a panic of a handler"
                );
            });
            Some(CommandError::Panicked(message))
        }
    };
    match (answered, error) {
        (Answer::Given(result), None) => Some((result, true)),
        (Answer::Given(result), Some(error)) => {
            log(Level::WARN, || {
                tracing::warn!(
                    target: "ganger::sched", pid = %task.pid, command = %id, error = %text_of(&error),
                    "a handler reported an error after it had completed the command"
                );
            });
            discard(counters, error);
            Some((result, true))
        }
        (Answer::Dropped | Answer::Later, Some(error)) => Some((Err(error), false)),
        (Answer::Dropped, None) => Some((Err(CommandError::Dropped), false)),
        (Answer::Later, None) => None,
    }
}

/// Whether the completer was dropped unused, or somebody has answered so.
fn is_dropped(completion: &Completion) -> bool {
    matches!(completion.result, Err(CommandError::Dropped))
}

/// What had become of the completer when the handler returned.
enum Answer {
    Given(CommandResult),
    Dropped,
    Later,
}
