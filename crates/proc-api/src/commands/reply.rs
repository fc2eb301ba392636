//! The right and the duty to give an answer of a known type.

use super::{Completer, EndWatch};
use crate::values::{BoxError, Payload, Pid};
use std::fmt;
use std::marker::PhantomData;

/// The right, and the duty, to give a single answer of type `T`: a [`Completer`] that knows the
/// type.
///
/// A message with a question carries a reply inside. The handler of a [typed
/// command](crate::TypedCommand) gets a reply with the command, and may give it to a process in a
/// message.
///
/// Dropping the reply unused answers with [`CommandError::Dropped`](crate::CommandError::Dropped).
/// Its holder may move it to any thread, and keep it for any time.
///
/// ```
/// use ganger_proc_api::{Actor, Context, Reply, StepOutput, StepResult};
///
/// enum Count {
///     Add(u64),
///     Get(Reply<u64>),
/// }
///
/// struct Counter(u64);
///
/// impl Actor for Counter {
///     type Message = Count;
///
///     fn receive(&mut self, _: &Context, message: Count, _: &mut StepOutput) -> StepResult {
///         match message {
///             Count::Add(number) => self.0 += number,
///             Count::Get(reply) => reply.complete(self.0),
///         }
///         Ok(())
///     }
/// }
/// ```
#[must_use = "dropping a reply answers with an error"]
pub struct Reply<T> {
    completer: Completer,
    answer: PhantomData<fn(T)>,
}

impl<T: Send + 'static> Reply<T> {
    /// Makes a reply that answers through `completer`; for schedulers and for tests.
    #[inline]
    pub fn new(completer: Completer) -> Self {
        let answer = PhantomData;
        Self { completer, answer }
    }

    /// Answers. Never blocks.
    #[inline]
    pub fn complete(self, answer: T) {
        self.completer.complete(Payload::any(answer));
    }

    /// Answers with an error. Never blocks.
    pub fn fail(self, error: impl Into<BoxError>) {
        self.completer.fail(error);
    }

    /// Returns the waiting process; `None` when code outside of any process waits for the answer.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        self.completer.pid()
    }

    /// Returns whether the work may be given up: see [`Completer::is_cancelled`].
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.completer.is_cancelled()
    }

    /// Has `call` called when the answer is unwanted: see [`Completer::on_end`].
    #[must_use = "dropping it takes the call back"]
    pub fn on_end(&self, call: impl FnOnce() + Send + 'static) -> Option<EndWatch> {
        self.completer.on_end(call)
    }

    /// Returns the completer beneath, where it is.
    #[cfg(feature = "serde")]
    pub(crate) fn completer(&self) -> &Completer {
        &self.completer
    }

    /// Returns the completer beneath, for answers that are payloads.
    pub fn untyped(self) -> Completer {
        self.completer
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reply").field(&self.completer.pid()).finish()
    }
}
