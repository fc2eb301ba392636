//! The simulated sockets.

use super::traffic::Place;
use super::world::World;
use crate::ready::Ready;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;

/// An end of a simulated connection.
pub(crate) struct End {
    world: Arc<World>,
    place: Place,
}

impl End {
    /// Begins to connect.
    pub(crate) fn connect(world: &Arc<World>, address: SocketAddr) -> Self {
        let world = Arc::clone(world);
        let place = world.with(|traffic| traffic.connect(address));
        Self { world, place }
    }

    /// Both ends of a connection.
    #[cfg_attr(not(unix), allow(dead_code, reason = "there are no such sockets"))]
    pub(crate) fn pair(world: &Arc<World>) -> [Self; 2] {
        let places = world.with(super::traffic::Traffic::pair);
        places.map(|place| Self {
            world: Arc::clone(world),
            place,
        })
    }

    /// Whether the connection stands. It would block until it does.
    pub(crate) fn connected(&self) -> io::Result<()> {
        self.world.with(|traffic| traffic.connected(self.place))
    }

    pub(crate) fn watch(&self, ready: &Arc<Ready>) {
        let ready = Arc::downgrade(ready);
        self.world.with(|traffic| traffic.watch(self.place, ready));
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.world
            .with(|traffic| traffic.read(self.place, buffer, true))
    }

    pub(crate) fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.world
            .with(|traffic| traffic.read(self.place, buffer, false))
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.world.with(|traffic| traffic.write(self.place, bytes))
    }

    pub(crate) fn write_vectored(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        let first = bytes.iter().find(|it| !it.is_empty());
        first.map_or(Ok(0), |first| self.write(first))
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.world.with(|traffic| traffic.shutdown(self.place, how))
    }

    pub(crate) fn abort(&self) {
        self.world.with(|traffic| traffic.abort(self.place));
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.world.with(|traffic| traffic.addresses(self.place))?.0)
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.world.with(|traffic| traffic.addresses(self.place))?.1)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.world.with(|traffic| traffic.close(self.place, false));
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

    pub(crate) fn watch(&self, ready: &Arc<Ready>) {
        let ready = Arc::downgrade(ready);
        self.world
            .with(|traffic| traffic.watch_listener(self.address, ready));
    }

    pub(crate) fn accept(&self) -> io::Result<(End, SocketAddr)> {
        let (place, client) = self.world.with(|traffic| traffic.accept(self.address))?;
        let world = Arc::clone(&self.world);
        Ok((End { world, place }, client))
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
