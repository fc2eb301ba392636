//! Messages with numbers.

use crate::run::{self, Run};

/// Names a sender of numbered messages: in each program, run and node another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SenderId {
    pub(crate) run: Run,
    pub(crate) serial: u64,
}

/// Numbers the messages of a sender: of a process, a task or a thread. A restarted process makes
/// new `Numbers`.
///
/// ```
/// use ganger_again::Numbers;
///
/// let mut numbers = Numbers::new();
/// let (first, second) = (numbers.once("a"), numbers.once("a"));
/// assert!(first.number() < second.number());
/// assert_eq!(first.sender(), second.sender());
/// ```
#[derive(Debug)]
pub struct Numbers {
    sender: SenderId,
}

impl Numbers {
    /// Makes a new sender.
    #[must_use]
    pub fn new() -> Self {
        let (run, serial) = (run::own(), run::next_number());
        let sender = SenderId { run, serial };
        Self { sender }
    }

    /// Gives a message a number. Its clones are the same message, asked again.
    pub fn once<M>(&mut self, message: M) -> Once<M> {
        Once {
            sender: self.sender,
            number: run::next_number(),
            message,
        }
    }

    /// Returns the name of the sender.
    #[must_use]
    pub fn sender(&self) -> SenderId {
        self.sender
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self::new()
    }
}

/// A numbered message: its receiver acts on the message once, however often the message comes. See
/// [`Seen`](crate::Seen).
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[must_use = "a message does nothing until it is sent"]
pub struct Once<M> {
    pub(crate) sender: SenderId,
    pub(crate) number: u64,
    pub(crate) message: M,
}

impl<M> Once<M> {
    /// Returns the sender that has numbered the message.
    #[must_use]
    pub fn sender(&self) -> SenderId {
        self.sender
    }

    /// Returns the number, greater than the numbers of the sender's messages before.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the message itself, for a look: only [`Seen::fresh`](crate::Seen::fresh) says
    /// whether the message is new.
    #[must_use]
    pub fn message(&self) -> &M {
        &self.message
    }
}
