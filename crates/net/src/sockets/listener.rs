//! What accepts connections.

use super::gate::Permit;
use super::socket::{Close, Closer, IoSource, Socket};
use super::stream::{Stream, Transport};
use crate::poller::Direction;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What accepts connections: a [`TcpListener`](crate::TcpListener) or a
/// [`UnixListener`](crate::UnixListener). It is closed when it is dropped.
pub struct Listener<L: Listening>(pub(crate) Arc<Socket<L>>);

/// The number of connections that may wait until they are accepted, if the system allows it.
pub(super) const BACKLOG: i32 = 1024;

/// The source of accepted connections: of a [`TcpListener`](crate::TcpListener) or a
/// [`UnixListener`](crate::UnixListener). Only this crate implements it.
pub trait Listening: IoSource {
    /// The connections.
    type Transport: Transport;
    /// The address of a peer.
    type Address;
    #[doc(hidden)]
    fn accept(&self) -> io::Result<(Self::Transport, Self::Address)>;
}

impl<L: Listening> Listener<L> {
    /// The next connection, and the address of its other side. Any number of processes may wait.
    ///
    /// **Cancel-safe**: a wait that is dropped has taken no connection.
    ///
    /// # Errors
    /// Those of the system. A connection that was broken before it was accepted is none, but
    /// passed over. `TimedOut` after the deadline; `NotConnected` when the listener is closed.
    pub async fn accept(&self) -> io::Result<(Stream<L::Transport>, L::Address)> {
        self.accept_as(None).await
    }

    /// As [`accept`](Self::accept). The permit is given back when the connection is closed, and at
    /// once when there is none.
    pub(crate) async fn accept_as(
        &self,
        permit: Option<Permit>,
    ) -> io::Result<(Stream<L::Transport>, L::Address)> {
        let (transport, address) = loop {
            match self.0.wait(Direction::Read, L::accept).await {
                Err(error) if is_of_connection(&error) => {}
                result => break result?,
            }
        };
        let socket = Socket::within(self.0.reactor(), transport, permit)?;
        Ok((Stream(socket), address))
    }

    /// [`accept`](Self::accept) ends within that time from now: see
    /// [`Stream::set_read_deadline`].
    pub fn set_deadline(&self, within: Option<Duration>) {
        self.0.set_deadline(Direction::Read, within);
    }

    /// What closes the listener from anywhere.
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer::of(&self.0)
    }

    /// Closes the listener: see [`Closer::close`]. The connections stay.
    pub fn close(&self) {
        Close::close(&*self.0);
    }
}

/// Whether the connection that was to be accepted is at fault: the next one may be well. Linux
/// hands on what the network says of it (accept(2), "Error handling").
fn is_of_connection(error: &io::Error) -> bool {
    #[cfg(target_os = "linux")]
    let is_so = {
        use rustix::io::Errno;
        let of_it = [
            Errno::PROTO,
            Errno::NOPROTOOPT,
            Errno::NETDOWN,
            Errno::NETUNREACH,
            Errno::HOSTDOWN,
            Errno::HOSTUNREACH,
            Errno::NONET,
        ];
        Errno::from_io_error(error).is_some_and(|it| of_it.contains(&it))
    };
    #[cfg(not(target_os = "linux"))]
    let is_so = false;
    let kinds = [
        io::ErrorKind::ConnectionAborted,
        io::ErrorKind::ConnectionReset,
    ];
    is_so || kinds.contains(&error.kind())
}

impl<L: Listening> fmt::Debug for Listener<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.0).finish()
    }
}
