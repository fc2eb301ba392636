//! What a process asks a handler to do.

use crate::values::{BoxError, Payloads};
use std::fmt;

/// Tells a process which of its yields a completion belongs to. The process chooses it. It need not
/// be unique.
pub type Tag = u64;

/// Names a kind of command. Ids from 0 to 255 are looked up in an array, others in a map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(u16);

impl CommandId {
    /// The id with that number.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl From<u16> for CommandId {
    fn from(number: u16) -> Self {
        Self(number)
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommandId({})", self.0)
    }
}

/// What a process asks for: a kind, and the values that go with it.
#[derive(Debug)]
pub struct Command {
    /// The kind.
    pub id: CommandId,
    /// The values.
    pub payloads: Payloads,
}

impl Command {
    /// A command of kind `id` with these values.
    #[must_use]
    #[inline]
    pub fn new(id: CommandId, payloads: impl Into<Payloads>) -> Self {
        Self {
            id,
            payloads: payloads.into(),
        }
    }
}

/// Why a command has no result. The yield is completed with it all the same.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// No handler is registered for the id.
    #[error("no handler is registered for command {0}")]
    Unknown(CommandId),
    /// The handler dropped its completer without using it.
    #[error("the handler dropped its completer without completing the command")]
    Dropped,
    /// The handler panicked, with this message.
    #[error("the handler panicked: {0}")]
    Panicked(Box<str>),
    /// The handler, or the code that it gave the completer to, reported this error. This error has
    /// the same text and the same source.
    #[error(transparent)]
    Failed(BoxError),
}
