//! Sockets with paths of the file system.

use super::listener::{BACKLOG, Listener, Listening};
use super::socket::{IoSource, Socket};
use super::stream::{Stream, Transport};
use crate::look::{About, SocketKind};
use crate::poller::{Direction, Lent};
use crate::reactor::Reactor;
use crate::world::{End, SimListening, Site};
use socket2::{Domain, SockAddr, Type};
use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{self, SocketAddr};
use std::path::Path;

/// A connection to a socket with a path, or an end of a pair.
pub type UnixStream = Stream<Unix>;

/// A listener for connections to a path. The file stays after the close.
pub type UnixListener = Listener<UnixListening>;

/// The connection of a [`UnixStream`].
pub struct Unix(Kind);

enum Kind {
    System(net::UnixStream),
    Simulated(End),
}

/// The listening socket of a [`UnixListener`].
pub struct UnixListening(ListenerKind);

enum ListenerKind {
    System(net::UnixListener),
    Simulated(SimListening),
}

impl IoSource for Unix {
    fn lent(&self) -> Option<Lent<'_>> {
        match &self.0 {
            Kind::System(it) => Some(it.as_fd()),
            Kind::Simulated(_) => None,
        }
    }

    fn about(&self) -> About {
        let about = About::of(SocketKind::Unix);
        match &self.0 {
            Kind::System(it) => About {
                local: text(it.local_addr()),
                peer: text(it.peer_addr()),
                ..about
            },
            Kind::Simulated(_) => about,
        }
    }

    fn watch(&self, id: u64) {
        if let Kind::Simulated(end) = &self.0 {
            end.watch(id);
        }
    }
}

/// Returns the path of an address, if it has one.
fn text(address: io::Result<SocketAddr>) -> Option<String> {
    let path = address.ok()?.as_pathname()?.display().to_string();
    Some(path)
}

impl Transport for Unix {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::System(it) => {
                let mut it = it;
                it.read(buffer)
            }
            Kind::Simulated(end) => end.read(buffer),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::System(it) => {
                let mut it = it;
                it.write(bytes)
            }
            Kind::Simulated(end) => end.write(bytes),
        }
    }

    fn write_vectored(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.0 {
            Kind::System(it) => {
                let mut it = it;
                it.write_vectored(bytes)
            }
            Kind::Simulated(end) => end.write_vectored(bytes),
        }
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match &self.0 {
            Kind::System(it) => it.shutdown(how),
            Kind::Simulated(end) => end.shutdown(how),
        }
    }
}

impl IoSource for UnixListening {
    fn lent(&self) -> Option<Lent<'_>> {
        match &self.0 {
            ListenerKind::System(it) => Some(it.as_fd()),
            ListenerKind::Simulated(_) => None,
        }
    }

    fn about(&self) -> About {
        let about = About::of(SocketKind::UnixListener);
        match &self.0 {
            ListenerKind::System(it) => About {
                local: text(it.local_addr()),
                ..about
            },
            ListenerKind::Simulated(_) => about,
        }
    }

    fn watch(&self, id: u64) {
        if let ListenerKind::Simulated(it) = &self.0 {
            it.watch(id);
        }
    }
}

impl Listening for UnixListening {
    type Transport = Unix;
    type Address = SocketAddr;

    fn accept(&self) -> io::Result<(Unix, SocketAddr)> {
        match &self.0 {
            ListenerKind::System(it) => {
                let (stream, address) = it.accept()?;
                stream.set_nonblocking(true)?;
                Ok((Unix(Kind::System(stream)), address))
            }
            ListenerKind::Simulated(it) => {
                let (end, _) = it.accept()?;
                // A peer without a path.
                let address = SocketAddr::from_pathname("")?;
                Ok((Unix(Kind::Simulated(end)), address))
            }
        }
    }
}

impl Stream<Unix> {
    /// Connects to the socket at a path.
    ///
    /// # Errors
    /// Errors of the system; `WouldBlock` when too many connections wait at the listener; `Other`
    /// on a thread without a network.
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let reactor = Reactor::current()?;
        if let Some(world) = reactor.world() {
            let end = End::connect(world, world.address(Site::from(path.as_ref())));
            let socket = Socket::within(&reactor, Unix(Kind::Simulated(end)), None)?;
            let connected = |it: &Unix| match &it.0 {
                Kind::System(_) => Ok(()),
                Kind::Simulated(end) => end.connected(),
            };
            socket.wait(Direction::Write, connected).await?;
            return Ok(Self(socket));
        }
        let address = SockAddr::unix(path)?;
        let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        // The connection is established at once, or fails.
        socket.connect(&address)?;
        let stream = Unix(Kind::System(OwnedFd::from(socket).into()));
        Socket::new(stream).map(Self)
    }

    /// Makes the two ends of a connection without a path.
    ///
    /// # Errors
    /// Errors of the system; `Other` on a thread without a network.
    pub fn pair() -> io::Result<(Self, Self)> {
        if let Some(world) = Reactor::current()?.world() {
            let [one, other] = End::pair(world).map(|end| Unix(Kind::Simulated(end)));
            return Ok((Self(Socket::new(one)?), Self(Socket::new(other)?)));
        }
        let (one, other) = net::UnixStream::pair()?;
        Ok((Self::from_std(one)?, Self::from_std(other)?))
    }

    /// Takes a connection of the standard library into the network of this thread.
    ///
    /// # Errors
    /// Errors of the system; `Other` on a thread without a network.
    pub fn from_std(stream: net::UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Socket::new(Unix(Kind::System(stream))).map(Self)
    }
}

impl Listener<UnixListening> {
    /// Listens at a path without a file.
    ///
    /// # Errors
    /// Errors of the system, mostly `AddrInUse`; `Other` on a thread without a network.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        if let Some(world) = Reactor::current()?.world() {
            let address = world.address(Site::from(path.as_ref()));
            let listening = SimListening::bind(world, address)?;
            let listening = UnixListening(ListenerKind::Simulated(listening));
            return Socket::new(listening).map(Self);
        }
        let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&SockAddr::unix(path)?)?;
        socket.listen(BACKLOG)?;
        Self::from_std(OwnedFd::from(socket).into())
    }

    /// Takes a listener of the standard library into the network of this thread.
    ///
    /// # Errors
    /// Errors of the system; `Other` on a thread without a network.
    pub fn from_std(listener: net::UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Socket::new(UnixListening(ListenerKind::System(listener))).map(Self)
    }
}
