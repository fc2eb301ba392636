//! The events and errors of a session.

use crate::id::{Half, Incarnation, Lane};
use crate::wire::{FrameError, Messages, ReadError};
use thiserror::Error;

/// An event of a session.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The peer has answered.
    Up {
        /// The own half.
        session: Half,
        /// The run of the peer.
        peer: Incarnation,
    },
    /// Messages of the peer: the next of their lane. None comes after the end of their session.
    Received {
        /// The own half.
        session: Half,
        /// Their lane.
        lane: Lane,
        /// The messages.
        messages: Messages,
    },
    /// A session has ended. Each half ends once, if it was up or has accepted messages.
    Ended {
        /// The own half.
        session: Half,
        /// Why.
        why: End,
        /// Messages whose arrival is not certain.
        undelivered: Undelivered,
    },
    /// A peer was refused, or has refused this node. The session has not changed.
    Refused(Refusal),
}

/// Why a session has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum End {
    /// The peer has opened another session.
    #[error("the peer has opened another session")]
    Newer,
    /// The peer was started again.
    #[error("the peer was started again")]
    Restarted,
    /// The peer does not know the session: it has ended there.
    #[error("the session has ended at the peer")]
    Reset,
    /// The peer has left.
    #[error("the peer has left")]
    Bye,
    /// Nothing was heard for [`Settings::dead`](crate::Settings::dead).
    #[error("nothing was heard of the peer")]
    Silence,
    /// Frames were not acknowledged for [`Settings::dead`](crate::Settings::dead).
    #[error("the peer has not acknowledged messages")]
    NoProgress,
    /// The peer did not answer after its engine had said that it is gone.
    #[error("the engine has lost the peer")]
    Vanished,
    /// The peer did not answer a Hello for [`Settings::dead`](crate::Settings::dead), and messages
    /// waited for it.
    #[error("the peer can't be reached")]
    Unreachable,
    /// The peer has sent bytes that are not a frame.
    #[error("malformed frame: {0}")]
    Malformed(FrameError),
    /// The peer has sent a message that its receiver can't read.
    #[error("malformed message: {0}")]
    Unreadable(ReadError),
    /// The peer has acknowledged frames that were not sent, or sent more than it may.
    #[error("the peer has broken the protocol")]
    Violation,
    /// This side has closed the session.
    #[error("closed by this node")]
    Closed,
}

/// The unacknowledged messages of a session at its end.
#[derive(Debug, Default)]
pub struct Undelivered {
    /// How many messages were sent, and not acknowledged. The peer may have some of them.
    pub unacknowledged: u64,
    /// The messages of the queues, never sent, in order.
    pub unsent: Vec<(Lane, Messages)>,
}

/// Why no session came about.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The peer knows another live node with this node's name. This node must stop.
    #[error("another node with this name is alive")]
    NameTaken,
    /// The peer knows a later incarnation of this node. This node must go on above it: see
    /// [`Halves::rise_above`](crate::Halves::rise_above).
    #[error("a later incarnation of this node is known: {0}")]
    Outdated(Incarnation),
    /// The peer is a node of another cluster.
    #[error("the peer belongs to the cluster {0:?}")]
    OtherCluster(Box<str>),
    /// The peer says that it is another node than its engine says.
    #[error("the peer calls itself {0:?}")]
    OtherName(Box<str>),
    /// The peer's proof is wrong: its cookie, for instance.
    #[error("the peer's proof is wrong: the cookies of the two nodes' builders differ")]
    WrongProof,
    /// The peer has sent bytes that are not a frame, or a frame of another version.
    #[error("malformed frame: {0}")]
    Malformed(FrameError),
}

/// A message was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// No session exists: open it first.
    #[error("no session")]
    NoSession,
    /// The lane's queue is full. The caller may send again when the session has sent frames.
    #[error("the queue is full")]
    Full,
    /// The message needs a larger frame: send it in parts.
    #[error("the message needs a frame of {needs} bytes, and {most} is the most")]
    TooLarge {
        /// The length of a frame with the message.
        needs: usize,
        /// The longest frame.
        most: usize,
    },
}
