//! The simulated sockets: each is the name of a state in the simulated network.

use super::events::World;
use super::packets::{Mailbox, Packet};
use super::traffic::{EndId, Traffic};
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;

/// An end of a simulated connection.
pub(crate) struct End {
    world: Arc<World>,
    end: EndId,
}

impl End {
    /// Starts to connect.
    pub(crate) fn connect(world: &Arc<World>, address: SocketAddr) -> Self {
        let world = Arc::clone(world);
        let end = world.with(|traffic| traffic.connect(address));
        Self { world, end }
    }

    /// Creates both ends of a connection.
    #[cfg_attr(not(unix), allow(dead_code, reason = "there are no such sockets"))]
    pub(crate) fn pair(world: &Arc<World>) -> [Self; 2] {
        let ends = world.with(Traffic::pair);
        ends.map(|end| Self {
            world: Arc::clone(world),
            end,
        })
    }

    /// Fails with `WouldBlock` until the connection is established.
    pub(crate) fn connected(&self) -> io::Result<()> {
        self.world.with(|traffic| traffic.connected(self.end))
    }

    pub(crate) fn watch(&self, id: u64) {
        self.world.with(|traffic| traffic.watch(self.end, id));
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.world
            .with(|traffic| traffic.read(self.end, buffer, true))
    }

    pub(crate) fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.world
            .with(|traffic| traffic.read(self.end, buffer, false))
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.world.with(|traffic| traffic.write(self.end, bytes))
    }

    pub(crate) fn write_vectored(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        let first = bytes.iter().find(|it| !it.is_empty());
        first.map_or(Ok(0), |first| self.write(first))
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.world.with(|traffic| traffic.shutdown(self.end, how))
    }

    pub(crate) fn abort(&self) {
        self.world.with(|traffic| traffic.abort(self.end));
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.world.with(|traffic| traffic.addresses(self.end))?.0)
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.world.with(|traffic| traffic.addresses(self.end))?.1)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.world.with(|traffic| traffic.close(self.end, false));
    }
}

/// A simulated listener.
pub(crate) struct SimListening {
    world: Arc<World>,
    address: SocketAddr,
}

impl SimListening {
    pub(crate) fn bind(world: &Arc<World>, address: SocketAddr) -> io::Result<Self> {
        let world = Arc::clone(world);
        let address = world.with(|traffic| traffic.listen(address))?;
        Ok(Self { world, address })
    }

    pub(crate) fn watch(&self, id: u64) {
        self.world
            .with(|traffic| traffic.watch_listener(self.address, id));
    }

    pub(crate) fn accept(&self) -> io::Result<(End, SocketAddr)> {
        let (end, client) = self.world.with(|traffic| traffic.accept(self.address))?;
        let world = Arc::clone(&self.world);
        Ok((End { world, end }, client))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for SimListening {
    fn drop(&mut self) {
        self.world
            .with(|traffic| traffic.close_listener(self.address));
    }
}

/// A simulated UDP socket. Its address is taken until it is dropped.
pub(crate) struct SimUdp {
    world: Arc<World>,
    address: SocketAddr,
}

impl SimUdp {
    pub(crate) fn bind(world: &Arc<World>, address: SocketAddr) -> io::Result<Self> {
        let world = Arc::clone(world);
        let address = world.with(|traffic| traffic.bind(address))?;
        Ok(Self { world, address })
    }

    fn with<R>(&self, f: impl FnOnce(&mut Mailbox) -> R) -> R {
        self.world
            .with(|traffic| f(traffic.mailboxes.at(self.address)))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn watch(&self, id: u64) {
        self.with(|mailbox| mailbox.watch(id));
    }

    pub(crate) fn connect(&self, peer: SocketAddr) {
        self.with(|mailbox| mailbox.connect(peer));
    }

    pub(crate) fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        let packet = Packet {
            from: self.address,
            to,
            bytes: bytes.to_vec(),
        };
        self.world.with(|traffic| traffic.send_packet(&packet))
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let peer = self.with(|mailbox| mailbox.peer());
        self.send_to(bytes, peer.ok_or(io::ErrorKind::NotConnected)?)
    }

    pub(crate) fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let packet = self.with(Mailbox::take);
        let packet = packet.ok_or(io::ErrorKind::WouldBlock)?;
        let length = packet.bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&packet.bytes[..length]);
        Ok((length, packet.from))
    }
}

impl Drop for SimUdp {
    fn drop(&mut self) {
        self.world
            .with(|traffic| traffic.mailboxes.remove(self.address, traffic.present));
    }
}

/// A simulated listener for a signal.
#[cfg_attr(not(unix), allow(dead_code, reason = "there are no signals"))]
pub(crate) struct SimSignal {
    world: Arc<World>,
    key: u64,
}

#[cfg_attr(not(unix), allow(dead_code, reason = "there are no signals"))]
impl SimSignal {
    pub(crate) fn new(world: &Arc<World>, signal: i32) -> Self {
        let key = world.with(|traffic| traffic.signals.listen(signal));
        let world = Arc::clone(world);
        Self { world, key }
    }

    pub(crate) fn watch(&self, id: u64) {
        self.world
            .with(|traffic| traffic.signals.watch(self.key, id));
    }

    /// Fails with `WouldBlock` if no signal has come.
    pub(crate) fn take(&self) -> io::Result<()> {
        match self.world.with(|traffic| traffic.signals.take(self.key)) {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Drop for SimSignal {
    fn drop(&mut self) {
        self.world.with(|traffic| traffic.signals.remove(self.key));
    }
}
