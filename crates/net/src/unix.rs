//! Sockets with paths of the file system.

use crate::listener::Listener;
use crate::net::Net;
use crate::poller::Lent;
use crate::socket::Socket;
use crate::stream::Stream;
use crate::transport::{Listening, Source, Transport};
use socket2::{Domain, SockAddr, Type};
use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{self, SocketAddr};
use std::path::Path;

/// A connection to a socket with a path, or one of a pair.
pub type UnixStream = Stream<Unix>;

/// What accepts connections at a path. The file stays when it is closed.
pub type UnixListener = Listener<UnixListening>;

/// The connection of a [`UnixStream`].
#[derive(Debug)]
pub struct Unix(net::UnixStream);

/// What a [`UnixListener`] listens with.
#[derive(Debug)]
pub struct UnixListening(net::UnixListener);

impl Source for Unix {
    fn lent(&self) -> Option<Lent<'_>> {
        Some(self.0.as_fd())
    }
}

impl Transport for Unix {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn write_vectored(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        (&self.0).write_vectored(bytes)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.shutdown(how)
    }
}

impl Source for UnixListening {
    fn lent(&self) -> Option<Lent<'_>> {
        Some(self.0.as_fd())
    }
}

impl Listening for UnixListening {
    type Transport = Unix;
    type Address = SocketAddr;

    fn accept(&self) -> io::Result<(Unix, SocketAddr)> {
        let (stream, address) = self.0.accept()?;
        stream.set_nonblocking(true)?;
        Ok((Unix(stream), address))
    }
}

/// Whether this thread's network takes such sockets. It is asked before there is a file.
fn is_possible() -> io::Result<()> {
    Net::current()?.reactor().poller().map(drop)
}

impl Stream<Unix> {
    /// Connects to the socket at that path.
    ///
    /// # Errors
    /// Those of the system; `WouldBlock` when too many connections wait at the listener; `Other`
    /// on a thread without a network.
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        is_possible()?;
        let address = SockAddr::unix(path)?;
        let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        // It stands at once, or fails.
        socket.connect(&address)?;
        Socket::new(Unix(OwnedFd::from(socket).into())).map(Self)
    }

    /// Two sides of a connection without a path.
    ///
    /// # Errors
    /// Those of the system; `Other` on a thread without a network.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = net::UnixStream::pair()?;
        Ok((Self::from_std(one)?, Self::from_std(other)?))
    }

    /// Takes a connection of the standard library into the network of this thread.
    ///
    /// # Errors
    /// Those of the system; `Other` on a thread without a network.
    pub fn from_std(stream: net::UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Socket::new(Unix(stream)).map(Self)
    }
}

impl Listener<UnixListening> {
    /// Listens at that path, where no file may be.
    ///
    /// # Errors
    /// Those of the system, mostly `AddrInUse`; `Other` on a thread without a network.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        is_possible()?;
        Self::from_std(net::UnixListener::bind(path)?)
    }

    /// Takes a listener of the standard library into the network of this thread.
    ///
    /// # Errors
    /// Those of the system; `Other` on a thread without a network.
    pub fn from_std(listener: net::UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Socket::new(UnixListening(listener)).map(Self)
    }
}
