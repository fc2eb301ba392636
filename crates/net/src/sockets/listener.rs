//! Listeners: they accept connections.

use super::gate::Permit;
use super::socket::{Close, Closer, IoSource, Socket};
use super::stream::{Stream, Transport};
use crate::poller::Direction;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A listener for connections: a [`TcpListener`](crate::TcpListener) or a
/// [`UnixListener`](crate::UnixListener). The drop closes it.
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
    /// Accepts the next connection, with the address of its peer. Any number of processes may wait.
    ///
    /// **Cancel-safe**: a dropped wait has taken no connection.
    ///
    /// # Errors
    /// Errors of the system, without errors of a single connection: a connection that broke before
    /// its accept is passed over. `TimedOut` after the deadline; `NotConnected` when the listener
    /// is closed.
    pub async fn accept(&self) -> io::Result<(Stream<L::Transport>, L::Address)> {
        self.accept_as(None).await
    }

    /// Accepts a connection as [`accept`](Self::accept) does, under a permit. The close of the
    /// connection frees the permit; an error frees it at once.
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

    /// Limits [`accept`](Self::accept) to this time from now: see [`Stream::set_read_deadline`].
    pub fn set_deadline(&self, within: Option<Duration>) {
        self.0.set_deadline(Direction::Read, within);
    }

    /// Returns a handle that closes the listener from anywhere.
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer::of(&self.0)
    }

    /// Closes the listener: see [`Closer::close`]. The connections stay open.
    pub fn close(&self) {
        Close::close(&*self.0);
    }
}

/// Returns whether the new connection is at fault, and not the listener. Linux passes on errors of
/// the network (accept(2), "Error handling").
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
