//! Messages, addressed messages, and why a send can fail.

use super::{EndKind, IntoPayloads, Payloads, Pid, Symbol, TypeName, TypePair, WrongType};
use std::any::Any;

/// A message to a process: a source, a topic, and values.
#[derive(Debug, Default)]
pub struct Message {
    /// The sender; `None` for code outside of any process.
    pub source: Option<Pid>,
    /// The subject of the message.
    pub topic: Symbol,
    /// Its values.
    pub payloads: Payloads,
}

impl Message {
    /// Creates a message without a source; see [`from_pid`](Self::from_pid).
    #[must_use]
    #[inline]
    pub fn new(topic: impl Into<Symbol>, payloads: impl IntoPayloads) -> Self {
        Self {
            source: None,
            topic: topic.into(),
            payloads: payloads.into_payloads(),
        }
    }

    /// Sets `source` as the source of the message.
    #[must_use]
    #[inline]
    pub fn from_pid(self, source: Pid) -> Self {
        Self {
            source: Some(source),
            ..self
        }
    }

    /// Addresses the message to `target`.
    #[must_use]
    #[inline]
    pub fn to(self, target: Pid) -> Envelope {
        Envelope {
            target,
            message: self,
        }
    }
}

/// A message with the PID of its receiver. Routers move envelopes.
///
/// ```
/// use ganger_proc_api::{Message, Pid};
/// let target: Pid = "{main|7}".parse()?;
/// let envelope = Message::new("greet", "hello").to(target);
/// assert_eq!(envelope.target, target);
/// assert_eq!(envelope.message.topic, "greet");
/// # Ok::<(), ganger_proc_api::ParsePidError>(())
/// ```
#[derive(Debug)]
pub struct Envelope {
    /// The receiver.
    pub target: Pid,
    /// The message.
    pub message: Message,
}

impl Envelope {
    /// Creates a message from `source` to `target`.
    #[must_use]
    #[inline]
    pub fn new(
        source: impl Into<Option<Pid>>,
        target: Pid,
        topic: impl Into<Symbol>,
        payloads: impl IntoPayloads,
    ) -> Self {
        let message = Message {
            source: source.into(),
            topic: topic.into(),
            payloads: payloads.into_payloads(),
        };
        Self { target, message }
    }
}

/// A send was refused. The envelope is inside, so nothing is lost.
#[derive(Debug, thiserror::Error)]
#[error("can't send to {}: {kind}", .envelope.target)]
pub struct SendError {
    /// Why the send was refused.
    pub kind: SendErrorKind,
    /// The envelope.
    pub envelope: Box<Envelope>,
}

impl SendError {
    /// Creates the refusal of `envelope` for the reason `kind`.
    #[must_use]
    #[inline]
    pub fn new(kind: SendErrorKind, envelope: Envelope) -> Self {
        Self {
            kind,
            envelope: Box::new(envelope),
        }
    }

    /// Returns the envelope, to be sent elsewhere or later.
    #[must_use]
    pub fn into_envelope(self) -> Envelope {
        *self.envelope
    }

    /// Takes the message as a value of type `M`: see [`Message::take`].
    ///
    /// # Errors
    /// [`WrongType`], with the values inside.
    pub fn into_message<M: Any>(self) -> Result<M, WrongType> {
        self.envelope.message.take()
    }
}

/// Why a send was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum SendErrorKind {
    /// The process takes messages of another type alone.
    #[error(
        "type mismatch: the process takes messages of type {}, not {}{}",
        .0.expected(), .0.got(), .0.note()
    )]
    WrongType(TypePair),
    /// The host exists, but has no process with this number.
    #[error("no process has that PID")]
    NotFound,
    /// The process has ended, in this way.
    #[error("the process has ended{}", .0.note())]
    Ended(EndKind),
    /// The receiver is a channel whose receiving end is gone.
    #[error("the channel's receiver is gone")]
    Closed,
    /// The mailbox has reached its limit; try again later.
    #[error("the mailbox is full")]
    Full,
    /// The mailbox stayed full for as long as the sender waits.
    #[error("timed out: the mailbox stayed full")]
    Timeout,
    /// The sender waited for room in a step, and its process is cancelled or terminated.
    #[error("the sender is cancelled and no longer waits for room")]
    Cancelled,
    /// The node has no host with this name.
    #[error("no such host on the node")]
    HostNotFound,
    /// The router has neither a peer nor a fallback for this node.
    #[error("no route to the node")]
    NodeNotFound,
    /// The connection to the node is lost, or was never there. The message has not left this node.
    #[error("no connection to the node")]
    NoConnection,
    /// The message has a value of this type, which can't leave the node: no codec is registered for
    /// it.
    #[error("no codec for {0}: register the type to send it to other nodes")]
    NoCodec(TypeName),
    /// The message is longer than a message to another node may be.
    #[error("the message is too large for another node")]
    TooLarge,
    /// The scheduler of the process is stopping, or has stopped.
    #[error("the scheduler is stopping or has stopped")]
    Stopping,
    /// The mailbox is full, and the scheduler has not been started: nothing takes from it.
    #[error("the mailbox is full, and the scheduler has not been started: call `Scheduler::start`")]
    NotStarted,
}

impl SendErrorKind {
    /// Returns whether the receiver takes nothing any more, ever: it has ended, its channel is
    /// closed, or its scheduler has stopped.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::Closed | Self::Stopping)
    }

    /// Returns whether the mailbox was full: a later send may succeed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full | Self::Timeout | Self::NotStarted)
    }
}
