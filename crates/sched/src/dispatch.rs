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
use std::cell::RefCell;
use std::sync::Arc;
use tracing::Level;

thread_local! {
    static CURRENT: RefCell<Option<Call>> = const { RefCell::new(None) };
}

/// A handler that is on this thread's stack.
struct Call {
    /// The process whose yield it is; only compared.
    cell: *const ProcessCell,
    token: u64,
    completion: Option<Completion>,
}

/// Keeps the completion when it belongs to the handler that is on this thread's stack; else gives it
/// back.
pub(crate) fn intercept(
    cell: &Arc<ProcessCell>,
    token: u64,
    completion: Completion,
) -> Option<Completion> {
    let mut completion = Some(completion);
    // The thread-local may be gone when a destructor of another one drops a completer: then no
    // handler is on the stack.
    let _ = CURRENT.try_with(|current| {
        if let Some(call) = &mut *current.borrow_mut()
            && call.cell == Arc::as_ptr(cell)
            && call.token == token
        {
            call.completion = completion.take();
        }
    });
    completion
}

/// Dispatches the yields in `out`, in order.
pub(crate) fn dispatch(task: &Task, core: &mut Core, out: &mut StepOutput, counters: &Counters) {
    for Yield { command, tag } in out.drain_yields() {
        counters.yields.bump();
        let token = core.yields.begin();
        let completer = Completer::new(Arc::clone(task) as _, tag, token);
        if let Some(result) = call(task, token, command, completer, counters) {
            // What arrived before this completion stays before it.
            core.receive(&task.state);
            let completion = Completion { tag, result };
            core.pending
                .push_back(Item::Completion { token, completion });
        }
    }
}

type CommandResult = Result<ganger_proc_api::Payload, CommandError>;

/// Calls the handler. Returns the completion if there is one already.
fn call(
    task: &Task,
    token: u64,
    command: Command,
    completer: Completer,
    counters: &Counters,
) -> Option<CommandResult> {
    let id = command.id;
    let handler = task.shared.commands.get(id);
    let call = Call {
        cell: Arc::as_ptr(task),
        token,
        completion: None,
    };
    let outer = CURRENT.replace(Some(call));
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
    let caught = CURRENT.replace(outer).and_then(|call| call.completion);

    let answered = match caught {
        Some(Completion {
            result: Err(CommandError::Dropped),
            ..
        }) => Answer::Dropped,
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
        (Answer::Given(result), None) => Some(result),
        (Answer::Given(result), Some(error)) => {
            log(Level::WARN, || {
                tracing::warn!(
                    target: "ganger::sched", pid = %task.pid, command = %id, error = %text_of(&error),
                    "a handler reported an error after it had completed the command"
                );
            });
            discard(counters, error);
            Some(result)
        }
        (Answer::Dropped | Answer::Later, Some(error)) => Some(Err(error)),
        (Answer::Dropped, None) => Some(Err(CommandError::Dropped)),
        (Answer::Later, None) => None,
    }
}

/// What had become of the completer when the handler returned.
enum Answer {
    Given(CommandResult),
    Dropped,
    Later,
}
