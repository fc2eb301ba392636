//! What accepts connections.

use crate::ready::Side;
use crate::socket::{Close, Closer, Socket};
use crate::stream::Stream;
use crate::transport::Listening;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What accepts connections: a [`TcpListener`](crate::TcpListener) or a
/// [`UnixListener`](crate::UnixListener). It is closed when it is dropped.
pub struct Listener<L: Listening>(pub(crate) Arc<Socket<L>>);

impl<L: Listening> Listener<L> {
    /// The next connection, and the address of its other side. Any number of processes may wait.
    ///
    /// **Cancel-safe**: a wait that is dropped has taken no connection.
    ///
    /// # Errors
    /// Those of the system. A connection that was broken before it was accepted is none, but
    /// passed over. `TimedOut` after the deadline; `NotConnected` when the listener is closed.
    pub async fn accept(&self) -> io::Result<(Stream<L::Transport>, L::Address)> {
        let (transport, address) = self.accept_transport().await?;
        let socket = Socket::within(self.0.net(), transport, None)?;
        Ok((Stream(socket), address))
    }

    pub(crate) async fn accept_transport(&self) -> io::Result<(L::Transport, L::Address)> {
        loop {
            match self.0.wait(Side::Read, L::accept).await {
                Err(error) if is_of_connection(&error) => {}
                result => return result,
            }
        }
    }

    /// [`accept`](Self::accept) ends within that time from now: see
    /// [`Stream::set_read_deadline`].
    pub fn set_deadline(&self, within: Option<Duration>) {
        self.0.set_deadline(Side::Read, within);
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

/// Whether one connection has failed, and the listener has not.
fn is_of_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

impl<L: Listening> fmt::Debug for Listener<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.0).finish()
    }
}
