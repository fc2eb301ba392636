//! Descriptions of the open sockets of a network: for crates with a view for people.
//!
//! **Problem.** A reader asks for the open sockets, and for the waiting process of each. A socket
//! that kept its addresses and its waiters by name would pay for readers that never come.
//!
//! **Protocol.** The network has a weak reference to each socket. A reader takes those of a page,
//! by their ids, under the lock of the network; then it asks each socket: the system for its
//! addresses, and the wakers that its operations have left for their processes.

use ganger_proc_api::Pid;
use std::fmt;

/// The most waiters of a socket in a [`SocketLook`].
pub(crate) const MOST_WAITERS: usize = 16;

/// An open socket, as [`open_sockets`](crate::open_sockets) has seen it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketLook {
    /// Its id in its network, from 1 up.
    pub id: u64,
    /// What it is.
    pub kind: SocketKind,
    /// The address of this side, if any.
    pub local: Option<String>,
    /// The address of the peer, if any.
    pub peer: Option<String>,
    /// The operations that wait until it is ready, at most 16.
    pub waiters: Vec<SocketWaiter>,
}

/// An operation that waits until a socket is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketWaiter {
    /// Whether it waits for room to write; otherwise it waits for something to read, or to accept.
    pub is_write: bool,
    /// Its process, with the number of its scheduler: see
    /// [`Handle::number`](ganger_sched::Handle::number). `None` where the waker is not that of a
    /// process: of a command, or of a future in a set of futures.
    pub process: Option<(Pid, u64)>,
}

/// The kinds of sockets, and of what waits as they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SocketKind {
    /// A listener for TCP connections.
    TcpListener,
    /// A TCP connection.
    Tcp,
    /// A listener for connections to a path.
    UnixListener,
    /// A connection to a path, or an end of a pair.
    Unix,
    /// A UDP socket.
    Udp,
    /// A pipe from or to a child.
    Pipe,
    /// The end of a child.
    Child,
    /// The signals of a kind.
    Signal,
    /// A call that blocks a thread: of the file system, or for the addresses of a host.
    Call,
}

impl SocketKind {
    /// Returns the name: lower case, with underscores.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TcpListener => "tcp_listener",
            Self::Tcp => "tcp",
            Self::UnixListener => "unix_listener",
            Self::Unix => "unix",
            Self::Udp => "udp",
            Self::Pipe => "pipe",
            Self::Child => "child",
            Self::Signal => "signal",
            Self::Call => "call",
        }
    }
}

impl fmt::Display for SocketKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The description of a socket by the socket.
pub struct About {
    pub(crate) kind: SocketKind,
    pub(crate) local: Option<String>,
    pub(crate) peer: Option<String>,
}

impl About {
    /// Describes a socket without an address.
    pub(crate) fn of(kind: SocketKind) -> Self {
        Self {
            kind,
            local: None,
            peer: None,
        }
    }
}
