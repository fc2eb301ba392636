//! Errors.

use ganger_proc_api::{Message, SendErrorKind, SubmitErrorKind};
use std::any::Any;
use std::error::Error;
use std::fmt;

/// A message was not sent to the process of a key.
///
/// The message is inside, unless the scheduler's lifecycle hook has refused a process that had it.
#[derive(Debug)]
pub struct KeyedError {
    /// Why.
    pub kind: KeyedErrorKind,
    message: Option<Message>,
}

/// Why a message was not sent to the process of a key.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeyedErrorKind {
    /// The process has not taken it: its mailbox is full, for instance.
    Refused(SendErrorKind),
    /// The key has no process, and none could be started: the scheduler stops, for instance.
    NotStarted(SubmitErrorKind),
}

impl KeyedError {
    pub(crate) fn new(kind: KeyedErrorKind, message: Option<Message>) -> Self {
        Self { kind, message }
    }

    /// Returns the message, to be sent elsewhere or later, if it is of type `M`.
    #[must_use]
    pub fn into_message<M: Any>(self) -> Option<M> {
        self.message?.take().ok()
    }
}

impl fmt::Display for KeyedErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(kind) => write!(f, "can't send to the process of that key: {kind}"),
            Self::NotStarted(kind) => write!(f, "no process of that key was started: {kind}"),
        }
    }
}

/// The text of the inner error is part of this error's text. So its source is this error's source.
impl Error for KeyedErrorKind {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(kind) => kind.source(),
            Self::NotStarted(kind) => kind.source(),
        }
    }
}

impl fmt::Display for KeyedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl Error for KeyedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.kind.source()
    }
}
