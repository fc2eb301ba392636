//! What sockets there are.

use crate::poller::Lent;
use crate::ready::Ready;
use std::io;
use std::net::Shutdown;
use std::sync::Arc;

/// So many connections may wait until they are accepted, where the system allows it.
pub(crate) const BACKLOG: i32 = 1024;

/// A socket, of the system or of a simulation. None of its operations blocks.
pub trait Source: Send + Sync + 'static {
    /// Whether less than there was room for means that nothing is left, or no room, until the next
    /// event.
    fn is_short_all(&self) -> bool {
        false
    }

    /// The system's socket, if it is one.
    fn lent(&self) -> Option<Lent<'_>>;

    /// Its close breaks the connection, from now on.
    fn abort(&self) {}

    /// Tells that one, from now on, when it may be ready, where the poller does not.
    fn watch(&self, ready: &Arc<Ready>) {
        let _ = ready;
    }
}

/// A connection that bytes go through: that of a [`TcpStream`](crate::TcpStream), or of a
/// [`UnixStream`](crate::UnixStream). This crate alone implements it.
pub trait Transport: Source {
    #[doc(hidden)]
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;
    #[doc(hidden)]
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    #[doc(hidden)]
    fn write_vectored(&self, bytes: &[io::IoSlice<'_>]) -> io::Result<usize>;
    #[doc(hidden)]
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;
}

/// What accepts connections: that of a [`TcpListener`](crate::TcpListener), or of a
/// [`UnixListener`](crate::UnixListener). This crate alone implements it.
pub trait Listening: Source {
    /// The connections.
    type Transport: Transport;
    /// The address of the other side.
    type Address;
    #[doc(hidden)]
    fn accept(&self) -> io::Result<(Self::Transport, Self::Address)>;
}
