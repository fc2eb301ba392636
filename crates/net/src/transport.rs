//! What sockets there are.

use crate::poller::Lent;
use std::io;
use std::net::Shutdown;

/// A socket, of the system or of a simulation. None of its operations blocks.
pub trait Source: Send + Sync + 'static {
    /// Less than there was room for means that nothing is left, or no room, until the next event.
    const SHORT_IS_ALL: bool = false;

    /// The system's socket, if it is one.
    fn lent(&self) -> Option<Lent<'_>>;
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
