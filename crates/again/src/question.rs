//! A question with all its askers, and then its answer.
//!
//! **Protocol.**
//! 1. The *first asker's* message goes to the process, with a reply whose sink is the question.
//! 2. *Later askers* join: their replies wait in the question.
//! 3. The *answer* takes all replies out, stays in their place, and is given to each. A later asker
//!    gets the same answer.
//!
//! No code of users runs under the lock: answers are cloned, and replies completed, without it.

use crate::not_done::NotDone;
use ganger_proc_api::{
    CommandError, Completer, CompletionSink, ExitCause, Payload, Pid, Reply, Tag,
};
use ganger_sync::sync::{Mutex, lock};
use std::any::Any;
use std::mem;
use std::sync::Arc;

/// The most askers that wait for an answer, without the askers that have gone.
const MAX_WAITING: usize = 64;

/// A remembered answer. The particulars of errors are texts.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Answer<T> {
    Value(T),
    Dropped,
    Ended(ExitCause),
    Panicked(Box<str>),
    Timeout,
    Failed(Box<str>),
    /// The question was being worked on when its `Seen` was written down.
    #[cfg_attr(
        not(feature = "serde"),
        expect(dead_code, reason = "none is written down")
    )]
    Unknown,
}

impl<T: Clone> Answer<T> {
    fn of(result: &Result<T, CommandError>) -> Self {
        match result {
            Ok(value) => Self::Value(value.clone()),
            Err(CommandError::Dropped) => Self::Dropped,
            Err(CommandError::Ended(cause)) => Self::Ended(cause.clone()),
            Err(CommandError::Panicked(text)) => Self::Panicked(text.clone()),
            Err(CommandError::Timeout) => Self::Timeout,
            Err(error) => Self::Failed(error.to_string().into()),
        }
    }

    fn result(&self) -> Result<T, CommandError> {
        Err(match self {
            Self::Value(value) => return Ok(value.clone()),
            Self::Dropped => CommandError::Dropped,
            Self::Ended(cause) => CommandError::Ended(cause.clone()),
            Self::Panicked(text) => CommandError::Panicked(text.clone()),
            Self::Timeout => CommandError::Timeout,
            Self::Failed(text) => CommandError::Failed(String::from(&**text).into()),
            Self::Unknown => CommandError::Failed(NotDone::Unknown.into()),
        })
    }
}

enum State<T> {
    Open(Vec<Reply<T>>),
    Answered(Arc<Answer<T>>),
}

pub(crate) struct Question<T> {
    /// The first, with the number of its scheduler.
    asker: Option<(Pid, u64)>,
    state: Mutex<State<T>>,
}

impl<T: Any + Clone + Send + Sync> Question<T> {
    /// Creates a new question, and the reply for the process that works on it.
    pub(crate) fn begin(reply: Reply<T>) -> (Arc<Self>, Reply<T>) {
        let completer = reply.untyped();
        let (asker, tag) = (completer.asker(), completer.tag());
        let state = Mutex::new(State::Open(vec![Reply::new(completer)]));
        let question = Arc::new(Self { asker, state });
        let work = Completer::new(Arc::clone(&question) as _, tag, 0);
        (question, Reply::new(work))
    }

    /// Creates an answered question.
    #[cfg(feature = "serde")]
    pub(crate) fn answered(answer: Answer<T>) -> Arc<Self> {
        let state = Mutex::new(State::Answered(Arc::new(answer)));
        Arc::new(Self { asker: None, state })
    }

    /// Asks the question again.
    pub(crate) fn join(&self, reply: Reply<T>) {
        let mut state = lock(&self.state);
        match &mut *state {
            State::Answered(answer) => {
                let answer = Arc::clone(answer);
                drop(state);
                give(reply, answer.result());
            }
            State::Open(waiting) => {
                let gone: Vec<_> = waiting.extract_if(.., |it| it.is_cancelled()).collect();
                let refused = if waiting.len() < MAX_WAITING {
                    waiting.push(reply);
                    None
                } else {
                    Some(reply)
                };
                drop(state);
                drop(gone);
                if let Some(reply) = refused {
                    reply.fail(NotDone::Busy);
                }
            }
        }
    }

    fn answer(&self, result: Result<T, CommandError>) {
        /// The clone of an answer has panicked.
        struct Unwinding<'a, T: Any + Clone + Send + Sync>(&'a Question<T>);

        impl<T: Any + Clone + Send + Sync> Drop for Unwinding<'_, T> {
            fn drop(&mut self) {
                drop(self.0.end(Answer::Dropped));
            }
        }

        let unwinding = Unwinding(self);
        let kept = Answer::of(&result);
        mem::forget(unwinding);
        // The first asker gets the answer itself, with an error's own type.
        let mut result = Some(result);
        let (waiting, kept) = self.end(kept);
        for reply in waiting {
            give(reply, result.take().unwrap_or_else(|| kept.result()));
        }
    }
}

impl<T> Question<T> {
    /// Returns the answer, unless the question is being worked on.
    pub(crate) fn known(&self) -> Option<Arc<Answer<T>>> {
        match &*lock(&self.state) {
            State::Answered(answer) => Some(Arc::clone(answer)),
            State::Open(_) => None,
        }
    }

    /// Keeps the answer. Returns the waiting replies.
    fn end(&self, answer: Answer<T>) -> (Vec<Reply<T>>, Arc<Answer<T>>) {
        let answer = Arc::new(answer);
        let answered = State::Answered(Arc::clone(&answer));
        let waiting = match mem::replace(&mut *lock(&self.state), answered) {
            State::Open(waiting) => waiting,
            State::Answered(_) => Vec::new(),
        };
        (waiting, answer)
    }
}

fn give<T: Send + 'static>(reply: Reply<T>, result: Result<T, CommandError>) {
    match result {
        Ok(value) => reply.complete(value),
        Err(error) => reply.untyped().finish(Err(error)),
    }
}

impl<T: Any + Clone + Send + Sync> CompletionSink for Question<T> {
    fn complete(self: Arc<Self>, _: Tag, _: u64, result: Result<Payload, CommandError>) {
        self.answer(result.and_then(|value| Ok(value.take::<T>()?)));
    }

    fn complete_dropped(self: Arc<Self>, _: Tag, _: u64) {
        // The replies know whether the dropping process is about to end.
        drop(self.end(Answer::Dropped));
    }

    fn pid(&self) -> Option<Pid> {
        self.asker.map(|it| it.0)
    }

    fn scheduler(&self) -> u64 {
        self.asker.map_or(0, |it| it.1)
    }

    /// Returns `false`: an asker that has gone may ask again, so the work goes on.
    fn is_cancelled(&self, _: u64) -> bool {
        false
    }
}
