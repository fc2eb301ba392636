//! The result of a dispatch whose handler has not carried its command out. No handler is
//! registered, or it has failed, has panicked, or has dropped its completer.

use super::Dispatch;
use crate::base::contain::{discard, log, text_of_chain};
use crate::probe::Probe;
use crate::runtime::item::{Item, of_completion};
use crate::runtime::turn_place::TurnPlace;
use ganger_mpsc::Single;
use ganger_proc_api::{BoxError, CommandError, CommandId, Event, Tag};
use tracing::Level;

/// The state of a completer.
pub(super) enum Answer {
    /// Used: this is the answer.
    Given(Single<Item>),
    /// Used, and the answer went through the mailbox.
    Sent,
    /// Dropped unused.
    Dropped,
    /// Alive, perhaps on another thread.
    Later,
}

/// Why a handler has not carried a command out.
pub(super) enum Failure {
    Error(BoxError),
    Panic(Box<str>),
    /// No handler is registered.
    Unknown,
}

impl<'a, P: TurnPlace<'a>> Dispatch<'_, P> {
    /// Completes the command of a handler that failed, or dropped its completer.
    #[cold]
    #[inline(never)]
    pub(super) fn conclude(
        &mut self,
        (id, tag, token): (CommandId, Tag, u64),
        answer: Answer,
        failure: Option<Failure>,
    ) {
        let error = failure.map(|failure| self.error_of(failure, id));
        let answer = match answer {
            Answer::Sent => {
                let asked = self.asked(id);
                self.core.yields.insert(token, tag, asked);
                if let Some(error) = error {
                    self.report_late(id, error);
                }
                return;
            }
            Answer::Given(mut answer) => {
                if let Some(error) = error {
                    self.give_reason(id, answer.item_mut(), error);
                }
                answer
            }
            Answer::Dropped | Answer::Later => {
                if let Answer::Later = answer {
                    self.task.shared.probe.answered();
                }
                let probe = &self.task.shared.probe;
                probe.answered_inline(self.task.pid(), tag, token);
                // The completion comes after all messages sent by the handler.
                self.task.receive(self.core);
                of_completion(tag, token, Err(error.unwrap_or(CommandError::Dropped)))
            }
        };
        self.core.push_answer(tag, token, answer);
    }

    /// Returns the error of a failure.
    fn error_of(&self, failure: Failure, id: CommandId) -> CommandError {
        match failure {
            Failure::Error(error) => CommandError::Failed(error),
            Failure::Unknown => CommandError::Unknown(id),
            Failure::Panic(message) => {
                self.counters.panics.bump();
                log(Level::ERROR, || {
                    tracing::error!(
                        target: "ganger::sched", pid = %self.task.pid(), command = %id,
                        reason = %message,
                        "contained a panic of a handler"
                    );
                });
                CommandError::Panicked(message)
            }
        }
    }

    /// Gives the reason of a handler that has failed after the answer. The error takes the place of
    /// an answer by a dropped completer.
    fn give_reason(&self, id: CommandId, answer: &mut Item, error: CommandError) {
        if let Item::Event(Event::Completion(completion)) = answer
            && matches!(completion.result, Err(CommandError::Dropped))
        {
            completion.result = Err(error);
        } else {
            self.report_late(id, error);
        }
    }

    fn report_late(&self, id: CommandId, error: CommandError) {
        log(Level::WARN, || {
            tracing::warn!(
                target: "ganger::sched", pid = %self.task.pid(), command = %id,
                error = %text_of_chain(&error),
                "a handler reported an error after it had completed the command"
            );
        });
        discard(self.task.pid(), self.counters, error);
    }
}
