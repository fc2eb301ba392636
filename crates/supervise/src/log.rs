//! Calls of users' code whose panics must not end a supervisor: factories, subscribers.

use std::any::Any;
use std::error::Error;
use std::iter::successors;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `f`, and turns a panic into its message. The caller drops the values that `f` has
/// borrowed, or finds them unchanged.
pub(crate) fn contain<R>(f: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| message(&*panic))
}

/// Emits an event of `tracing`.
pub(crate) fn log(event: impl FnOnce()) {
    let _ = contain(event);
}

/// Returns the message of a panic.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "non-string panic payload".into())
}

/// The most causes in an error's text.
const CAUSES: usize = 16;

/// Returns the text of an error, followed by the texts of its sources.
pub(crate) fn text_of(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in successors(error.source(), |it| (*it).source()).take(CAUSES) {
        text.push_str(": ");
        text.push_str(&cause.to_string());
    }
    text
}
