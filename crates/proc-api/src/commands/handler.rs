//! The trait of handlers, which carry commands out.

use super::{Command, Completer, CompletionSink, Yield};
use crate::values::BoxError;
use std::sync::Arc;

/// Carries out the commands of a kind.
///
/// `handle` runs on the worker that ran the step, so it must not block. The handler answers at
/// once, or hands the completer on to other code. A closure is a handler:
///
/// ```
/// use ganger_proc_api::{Command, Completer, Handler, Payload};
///
/// fn double(command: Command, completer: Completer) -> Result<(), ganger_proc_api::BoxError> {
///     let n = command.payloads.into_first().as_u64().ok_or("double needs a number")?;
///     completer.complete(2 * n);
///     Ok(())
/// }
/// fn is_handler(_: impl Handler) {}
/// is_handler(double);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't handle commands",
    label = "this is not a handler",
    note = "a handler is a closure `|command: Command, completer: Completer| {{ … Ok(()) }}` \
            that returns a `Result<(), BoxError>`, or a type that implements `Handler`; both are \
            `Send + Sync + 'static`"
)]
pub trait Handler: Send + Sync + 'static {
    /// Carries `command` out, and has `completer` used, now or later.
    ///
    /// # Errors
    /// An error completes the yield with [`CommandError::Failed`](crate::CommandError::Failed),
    /// unless the completer has been used before. A panic is contained, and completes the yield
    /// with [`CommandError::Panicked`](crate::CommandError::Panicked).
    fn handle(&self, command: Command, completer: Completer) -> Result<(), BoxError>;

    /// Carries out the yield in `place`, and answers through `sink`: for schedulers, which leave
    /// the yield in place after the step. The handler reads from there. A copy of the whole yield
    /// would wait for the stores of the step.
    #[doc(hidden)]
    fn handle_in_place(
        &self,
        place: &mut Option<Yield>,
        sink: Arc<dyn CompletionSink>,
        token: u64,
    ) -> Result<(), BoxError> {
        match place.take() {
            Some(Yield { command, tag }) => self.handle(command, Completer::new(sink, tag, token)),
            None => nothing(sink, token),
        }
    }
}

/// Answers for a place without a yield.
#[cold]
fn nothing(sink: Arc<dyn CompletionSink>, token: u64) -> Result<(), BoxError> {
    drop(Completer::new(sink, 0, token));
    Ok(())
}

impl<F> Handler for F
where
    F: Fn(Command, Completer) -> Result<(), BoxError> + Send + Sync + 'static,
{
    fn handle(&self, command: Command, completer: Completer) -> Result<(), BoxError> {
        let (sink, tag, token) = completer.into_parts();
        match sink {
            // The closure has a single call site, so the compiler inlines it there.
            Some(sink) => self.handle_in_place(&mut Some(Yield { command, tag }), sink, token),
            None => Ok(()),
        }
    }

    #[inline]
    fn handle_in_place(
        &self,
        place: &mut Option<Yield>,
        sink: Arc<dyn CompletionSink>,
        token: u64,
    ) -> Result<(), BoxError> {
        match place.take() {
            Some(Yield { command, tag }) => self(command, Completer::new(sink, tag, token)),
            None => nothing(sink, token),
        }
    }
}

/// A shared handler is a handler, so a program can register the same handler in several places.
impl<H: Handler + ?Sized> Handler for Arc<H> {
    #[inline]
    fn handle(&self, command: Command, completer: Completer) -> Result<(), BoxError> {
        (**self).handle(command, completer)
    }

    #[inline]
    fn handle_in_place(
        &self,
        place: &mut Option<Yield>,
        sink: Arc<dyn CompletionSink>,
        token: u64,
    ) -> Result<(), BoxError> {
        (**self).handle_in_place(place, sink, token)
    }
}
