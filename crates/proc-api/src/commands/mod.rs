//! Commands, their handlers, and the completions that answer them.
//!
//! **Promises.** A command gets exactly one answer: a [`Completer`] is consumed by answering, and
//! answers with an error when it is dropped.
//!
//! **Imports.** `values` and `raw`.

mod command;
mod completer;
mod completion;
mod handler;
mod reply;
mod taken;
mod typed;

pub use command::{Command, CommandError, CommandId, Delivery, Tag, Yield};
pub use completer::{Completer, CompletionSink, EndCall, EndWatch, StepsCall};
pub use completion::Completion;
pub use handler::Handler;
pub use reply::Reply;
#[cfg(feature = "serde")]
pub(crate) use taken::{Parts, silently};
pub use typed::{Asked, TypedCommand, typed_handler};
