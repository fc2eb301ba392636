//! The result of a dispatch whose handler has not carried its command out. There is no handler, or
//! it has failed, has panicked, or has dropped its completer.

use super::Answer;
use crate::base::contain::{discard, log, text_of_chain};
use crate::base::stats::Counters;
use crate::core::cell::Task;
use crate::core::nodes;
use crate::core::owned::{Core, Item};
use crate::probe::Probe;
use ganger_proc_api::{BoxError, CommandError, CommandId, Event, Tag};
use tracing::Level;

/// Why a handler has not carried a command out.
pub(super) enum Failure {
    Error(BoxError),
    Panic(Box<str>),
    /// There is none.
    Unknown,
}

impl Failure {
    /// The error that it comes to.
    #[cold]
    fn into_error(self, task: &Task, id: CommandId, counters: &Counters) -> CommandError {
        match self {
            Self::Error(error) => CommandError::Failed(error),
            Self::Unknown => CommandError::Unknown(id),
            Self::Panic(message) => {
                counters.panics.bump();
                log(Level::ERROR, || {
                    tracing::error!(
                        target: "ganger::sched", pid = %task.pid, command = %id, reason = %message,
                        "contained a panic of a handler"
                    );
                });
                CommandError::Panicked(message)
            }
        }
    }
}

/// What there is to do when a handler has failed, or has dropped its completer. Says whether there
/// is an answer.
#[cold]
#[inline(never)]
pub(super) fn conclude(
    task: &Task,
    core: &mut Core,
    (id, tag, token): (CommandId, Tag, u64),
    answer: Answer,
    failure: Option<Failure>,
    counters: &Counters,
) -> bool {
    let error = failure.map(|failure| failure.into_error(task, id, counters));
    let answer = match answer {
        Answer::Sent => {
            core.yields.insert(token);
            if let Some(error) = error {
                report_late(task, id, error, counters);
            }
            return false;
        }
        Answer::Given(mut answer) => {
            if let Some(error) = error {
                give_reason(task, id, answer.item_mut(), error, counters);
            }
            answer
        }
        Answer::Dropped | Answer::Later => {
            if let Answer::Later = answer {
                task.shared.probe.answered();
            }
            task.shared.probe.answered_inline(task.pid, tag, token);
            // It happened when the handler returned, after whatever that has sent.
            core.receive(&task.state);
            let result = Err(error.unwrap_or(CommandError::Dropped));
            nodes::of_completion(tag, token, result)
        }
    };
    core.push_answer(token, answer);
    true
}

/// The handler has failed after the answer. If the answer says only that the completer was dropped,
/// the error takes its place.
#[cold]
fn give_reason(
    task: &Task,
    id: CommandId,
    answer: &mut Item,
    error: CommandError,
    counters: &Counters,
) {
    if let Item::Event(Event::Completion(completion)) = answer
        && matches!(completion.result, Err(CommandError::Dropped))
    {
        completion.result = Err(error);
    } else {
        report_late(task, id, error, counters);
    }
}

#[cold]
fn report_late(task: &Task, id: CommandId, error: CommandError, counters: &Counters) {
    log(Level::WARN, || {
        tracing::warn!(
            target: "ganger::sched", pid = %task.pid, command = %id, error = %text_of_chain(&error),
            "a handler reported an error after it had completed the command"
        );
    });
    discard(task.pid, counters, error);
}
