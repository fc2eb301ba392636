//! The commands of a process, and the errors of their answers.

use super::Completer;
use crate::values::{BoxError, ExitCause, IntoPayloads, Payload, Payloads, WrongType};
use std::fmt;
use std::mem;

/// Tells a process which yield a completion belongs to. The process chooses the tag, and may use a
/// tag more than once.
pub type Tag = u64;

/// Names a kind of command.
///
/// Ids from 0 to 255 are Ganger's own. Users choose ids from 256 on: the scheduler looks up an id
/// below 512 in an array, and a higher id in a map. The ids from 32,768 on belong to [typed
/// commands]; their users choose no numbers.
///
/// [typed commands]: crate::TypedCommand
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(u16);

impl CommandId {
    /// Creates the id with this number.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Returns the number.
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

/// A request of a process to a handler: a kind, and values.
#[derive(Debug)]
pub struct Command {
    /// The kind.
    pub id: CommandId,
    /// The values.
    pub payloads: Payloads,
}

impl Command {
    /// Creates a command of kind `id` with these values.
    #[must_use]
    #[inline]
    pub fn new(id: CommandId, payloads: impl IntoPayloads) -> Self {
        Self {
            id,
            payloads: payloads.into_payloads(),
        }
    }

    /// Takes the command, moved word by word. No value is left here.
    #[inline]
    pub(crate) fn take(&mut self) -> Self {
        Self {
            id: self.id,
            payloads: mem::take(&mut self.payloads).by_words(),
        }
    }
}

/// A command, and the tag of its completion.
#[derive(Debug)]
pub struct Yield {
    /// The command.
    pub command: Command,
    /// The tag.
    pub tag: Tag,
}

/// A command with the function that carries it out; Ganger's own handler calls the function. A call
/// on its way to the called process is such a command. For crates with commands of their own.
#[doc(hidden)]
#[derive(Debug)]
pub struct Delivery {
    /// The value of the command.
    pub value: Payload,
    /// Carries the command out. The function knows the type of `value`.
    pub run: fn(Payload, Completer) -> Result<(), BoxError>,
}

impl Delivery {
    /// Creates the command with this id. The id must be of a command of Ganger's own handler.
    #[must_use]
    pub fn command(self, id: CommandId) -> Command {
        Command::new(id, Payload::any(self))
    }

    /// Carries the command out.
    ///
    /// # Errors
    /// The error of the command's function.
    pub fn deliver(self, completer: Completer) -> Result<(), BoxError> {
        (self.run)(self.value, completer)
    }
}

/// Returns the advice for a command without a handler.
fn remedy(id: CommandId) -> &'static str {
    /// The ids of sockets.
    const SOCKETS: std::ops::RangeInclusive<u16> = 30..=39;
    /// The ids of streams.
    const STREAMS: std::ops::RangeInclusive<u16> = 50..=59;
    if SOCKETS.contains(&id.get()) || STREAMS.contains(&id.get()) {
        "it is a command of sockets: build the scheduler with `.driver(Net::new()?)`"
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
    /// The handler, or the called process, dropped its completer without using it.
    #[error("no answer: the handler or the called process dropped the completer")]
    Dropped,
    /// The called process has ended without an answer, in this way.
    #[error("no answer: the called process has ended: {0}")]
    Ended(ExitCause),
    /// The handler panicked, with this message.
    #[error("the handler panicked: {0}")]
    Panicked(Box<str>),
    /// No answer came within the given time.
    #[error("timed out: no answer")]
    Timeout,
    /// The answer is not of the expected type. The answer is inside. The box keeps completions
    /// small.
    #[error(transparent)]
    WrongType(Box<WrongType>),
    /// The handler, or the code that got its completer, reported this error. The outer error has
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
