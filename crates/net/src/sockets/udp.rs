//! UDP.

use super::address::ToAddress;
use super::socket::{Close, Closer, IoSource, Socket};
use crate::look::{About, SocketKind};
use crate::poller::{Direction, Lent};
use crate::reactor::Reactor;
use crate::world::SimUdp;
use std::fmt;
use std::io;
use std::net::{self, SocketAddr};
#[cfg(unix)]
use std::os::fd::AsFd;
#[cfg(windows)]
use std::os::windows::io::AsSocket;
use std::sync::Arc;
use std::time::Duration;

/// A UDP socket. The drop closes it.
///
/// All operations are cancel-safe, and any number of them may wait.
pub struct UdpSocket(pub(crate) Arc<Socket<Udp>>);

pub(crate) enum Udp {
    System(net::UdpSocket),
    Simulated(SimUdp),
}

impl IoSource for Udp {
    fn lent(&self) -> Option<Lent<'_>> {
        match self {
            #[cfg(unix)]
            Self::System(it) => Some(it.as_fd()),
            #[cfg(windows)]
            Self::System(it) => Some(it.as_socket()),
            Self::Simulated(_) => None,
        }
    }

    fn about(&self) -> About {
        let peer = match self {
            Self::System(it) => it.peer_addr().ok(),
            Self::Simulated(_) => None,
        };
        About {
            kind: SocketKind::Udp,
            local: self.local_addr().ok().map(|it| it.to_string()),
            peer: peer.map(|it| it.to_string()),
        }
    }

    fn watch(&self, id: u64) {
        if let Self::Simulated(it) = self {
            it.watch(id);
        }
    }
}

impl Udp {
    fn connect(&self, address: SocketAddr) -> io::Result<()> {
        match self {
            Self::System(it) => it.connect(address),
            Self::Simulated(it) => {
                it.connect(address);
                Ok(())
            }
        }
    }

    fn send_to(&self, packet: &[u8], address: SocketAddr) -> io::Result<usize> {
        match self {
            Self::System(it) => it.send_to(packet, address),
            Self::Simulated(it) => it.send_to(packet, address),
        }
    }

    fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        match self {
            Self::System(it) => it.recv_from(buffer),
            Self::Simulated(it) => it.recv_from(buffer),
        }
    }

    fn send(&self, packet: &[u8]) -> io::Result<usize> {
        match self {
            Self::System(it) => it.send(packet),
            Self::Simulated(it) => it.send(packet),
        }
    }

    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::System(it) => it.recv(buffer),
            Self::Simulated(it) => Ok(it.recv_from(buffer)?.0),
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::System(it) => it.local_addr(),
            Self::Simulated(it) => Ok(it.address()),
        }
    }
}

impl UdpSocket {
    /// Makes a socket at an address; port 0 is any free port.
    ///
    /// # Errors
    /// Errors of the system, mostly `AddrInUse`; `InvalidInput` when a text is not an address;
    /// `Other` on a thread without a network.
    pub fn bind(address: impl ToAddress) -> io::Result<Self> {
        let address = address.to_address()?;
        match Reactor::current()?.world() {
            Some(world) => {
                let socket = SimUdp::bind(world, address)?;
                Socket::new(Udp::Simulated(socket)).map(Self)
            }
            None => Self::from_std(net::UdpSocket::bind(address)?),
        }
    }

    /// Takes a socket of the standard library into the network of this thread.
    ///
    /// # Errors
    /// Errors of the system; `Other` on a thread without a network.
    pub fn from_std(socket: net::UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Socket::new(Udp::System(socket)).map(Self)
    }

    /// Sets the peer of [`send`](Self::send) and [`recv`](Self::recv). Does not wait.
    ///
    /// # Errors
    /// Errors of the system; `InvalidInput` when a text is not an address.
    pub fn connect(&self, address: impl ToAddress) -> io::Result<()> {
        let address = address.to_address()?;
        self.0.with(|it| it.connect(address))
    }

    /// Sends a packet to an address; waits for room.
    ///
    /// # Errors
    /// Errors of the system; `TimedOut` after the deadline; `NotConnected` when this socket is
    /// closed.
    pub async fn send_to(&self, packet: &[u8], address: impl ToAddress) -> io::Result<usize> {
        let address = address.to_address()?;
        self.0
            .wait(Direction::Write, |it| it.send_to(packet, address))
            .await
    }

    /// Receives the next packet, and its sender. Bytes beyond the buffer are lost.
    ///
    /// # Errors
    /// As for [`send_to`](Self::send_to).
    pub async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0
            .wait(Direction::Read, |it| it.recv_from(buffer))
            .await
    }

    /// Sends a packet to the peer of [`connect`](Self::connect).
    ///
    /// # Errors
    /// As for [`send_to`](Self::send_to).
    pub async fn send(&self, packet: &[u8]) -> io::Result<usize> {
        self.0.wait(Direction::Write, |it| it.send(packet)).await
    }

    /// Receives the next packet from the peer of [`connect`](Self::connect).
    ///
    /// # Errors
    /// As for [`send_to`](Self::send_to).
    pub async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.wait(Direction::Read, |it| it.recv(buffer)).await
    }

    /// Returns the address of this side.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.with(|it| it.local_addr())
    }

    /// Receives end within this time from now: see
    /// [`Stream::set_read_deadline`](crate::Stream::set_read_deadline).
    pub fn set_read_deadline(&self, within: Option<Duration>) {
        self.0.set_deadline(Direction::Read, within);
    }

    /// Sets the deadline of sends, as [`set_read_deadline`](Self::set_read_deadline) does of
    /// receives.
    pub fn set_write_deadline(&self, within: Option<Duration>) {
        self.0.set_deadline(Direction::Write, within);
    }

    /// Returns a handle that closes the socket from anywhere.
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer::of(&self.0)
    }

    /// Closes the socket: see [`Closer::close`].
    pub fn close(&self) {
        Close::close(&*self.0);
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UdpSocket").field(&self.0).finish()
    }
}
