//! What a process asks a handler to do.

use super::Completer;
use crate::values::{BoxError, ExitCause, IntoPayloads, Payload, Payloads, WrongType};
use std::fmt;
use std::mem;

/// Tells a process which of its yields a completion belongs to. The process chooses it. It need not
/// be unique.
pub type Tag = u64;

/// Names a kind of command.
///
/// Ids from 0 to 255 are Ganger's own. Users choose from 256 on: an id below 512 is looked up in an
/// array, others in a map. Those from 32,768 on belong to [typed commands], which need no numbers
/// from users.
///
/// [typed commands]: crate::TypedCommand
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

/// The number; of a typed command, the name of the type.
impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            Some(kind) => f.write_str(kind.name()),
            None => self.0.fmt(f),
        }
    }
}

impl fmt::Debug for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommandId({self})")
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
    pub fn new(id: CommandId, payloads: impl IntoPayloads) -> Self {
        Self {
            id,
            payloads: payloads.into_payloads(),
        }
    }

    /// The command, moved word by word. No value is left here.
    #[inline]
    pub(crate) fn take(&mut self) -> Self {
        Self {
            id: self.id,
            payloads: mem::take(&mut self.payloads).by_words(),
        }
    }
}

/// A command with the tag that its completion will carry.
#[derive(Debug)]
pub struct Yield {
    /// The command.
    pub command: Command,
    /// The tag.
    pub tag: Tag,
}

/// A command that knows how it is carried out, which Ganger's own handler does: a call on its way
/// to the process that is called, for instance. For crates that add commands of their own.
#[doc(hidden)]
#[derive(Debug)]
pub struct Delivery {
    /// What is known of the command.
    pub value: Payload,
    /// Knows its type.
    pub run: fn(Payload, Completer) -> Result<(), BoxError>,
}

impl Delivery {
    /// The command with that id, which has to be one of those that Ganger's handler carries out.
    #[must_use]
    pub fn command(self, id: CommandId) -> Command {
        Command::new(id, Payload::any(self))
    }

    /// Carries it out.
    ///
    /// # Errors
    /// What the command says.
    pub fn deliver(self, completer: Completer) -> Result<(), BoxError> {
        (self.run)(self.value, completer)
    }
}

/// What to do where a command has no handler.
fn remedy(id: CommandId) -> &'static str {
    /// The ids of sockets.
    const SOCKETS: std::ops::RangeInclusive<u16> = 30..=39;
    /// The ids of streams.
    const STREAMS: std::ops::RangeInclusive<u16> = 50..=59;
    if SOCKETS.contains(&id.get()) || STREAMS.contains(&id.get()) {
        "it is of sockets: a scheduler that is built with `.driver(Net::new()?)` has them"
    } else {
        "register one before the scheduler starts"
    }
}

/// Why a command has no result. The yield is completed with it all the same.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// No handler is registered for the id.
    #[error("no handler is registered for command {0}; {remedy}", remedy = remedy(*.0))]
    Unknown(CommandId),
    /// The handler, or the process that was called, dropped its completer without using it.
    #[error("no answer: the handler or the called process dropped the completer")]
    Dropped,
    /// The process that was asked has ended without an answer, in this way.
    #[error("no answer: the called process has ended: {0}")]
    Ended(ExitCause),
    /// The handler panicked, with this message.
    #[error("the handler panicked: {0}")]
    Panicked(Box<str>),
    /// No answer has come in the time that was given.
    #[error("timed out: no answer")]
    Timeout,
    /// The answer is not of the type that it was taken as. The answer is inside. The box keeps
    /// completions small.
    #[error(transparent)]
    WrongType(Box<WrongType>),
    /// The handler, or the code that it gave the completer to, reported this error. This error has
    /// the same text and the same source.
    #[error(transparent)]
    Failed(BoxError),
}

impl From<WrongType> for CommandError {
    #[cold]
    fn from(error: WrongType) -> Self {
        Self::WrongType(Box::new(error))
    }
}
