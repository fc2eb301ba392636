//! A connection with a peer, and the queue of frames for the peer.
//!
//! A connection is a [`Pipe`], clear or by TLS, with a reader and a writer, each a process. The
//! queue is the peer's: it outlives a connection.

mod connection;
mod outbox;
mod pipe;

pub(crate) use connection::Link;
pub(crate) use outbox::{Attached, Peer};
pub(crate) use pipe::{Incoming, Pipe, PipeError};
