//! The packets of UDP in a simulated network. Each is late by itself, so that they come in any
//! order.

use super::traffic::{Event, READS, Told, Traffic};
use super::world::World;
use crate::ready::Ready;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

/// So many packets wait at a socket until they are read. Others are lost.
const WAITING: usize = 256;

/// The longest packet.
const LONGEST: usize = 65_507;

#[derive(Clone)]
pub(super) struct Packet {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// What has come for a socket.
#[derive(Default)]
pub(super) struct Mailbox {
    ready: Weak<Ready>,
    /// Packets of others are no matter of it.
    peer: Option<SocketAddr>,
    waiting: VecDeque<Packet>,
}

impl Traffic {
    fn bind(&mut self, mut address: SocketAddr) -> io::Result<SocketAddr> {
        if address.port() == 0 {
            address.set_port(self.port());
        }
        if self.mailboxes.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        self.mailboxes.insert(address, Mailbox::default());
        Ok(address)
    }

    fn send_packet(&mut self, packet: &Packet) -> io::Result<usize> {
        if packet.bytes.len() > LONGEST {
            let text = "the packet is longer than one of UDP can be";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let copies = if self.happens(self.faults.losses) {
            0
        } else if self.happens(self.faults.duplicates) {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let at = self.now.saturating_add(self.latency());
            self.new.push((at, Event::Packet(packet.clone())));
        }
        Ok(packet.bytes.len())
    }

    pub(super) fn arrive_packet(&mut self, packet: Packet) -> Option<Told> {
        if self.cut.contains(&packet.from) || self.cut.contains(&packet.to) {
            return None;
        }
        let mailbox = self.mailboxes.get_mut(&packet.to)?;
        let is_of_peer = mailbox.peer.is_none_or(|peer| peer == packet.from);
        if !is_of_peer || mailbox.waiting.len() == WAITING {
            return None;
        }
        mailbox.waiting.push_back(packet);
        Some(Told(mailbox.ready.clone(), READS))
    }
}

/// A simulated socket of UDP. It is in the table for as long as there is one.
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
            .with(|traffic| f(traffic.mailboxes.entry(self.address).or_default()))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn watch(&self, ready: &Arc<Ready>) {
        self.with(|mailbox| mailbox.ready = Arc::downgrade(ready));
    }

    /// Packets that have come from others are dropped.
    pub(crate) fn connect(&self, peer: SocketAddr) {
        self.with(|mailbox| {
            mailbox.peer = Some(peer);
            mailbox.waiting.retain(|packet| packet.from == peer);
        });
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
        let peer = self.with(|mailbox| mailbox.peer);
        self.send_to(bytes, peer.ok_or(io::ErrorKind::NotConnected)?)
    }

    pub(crate) fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let packet = self.with(|mailbox| mailbox.waiting.pop_front());
        let packet = packet.ok_or(io::ErrorKind::WouldBlock)?;
        let length = packet.bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&packet.bytes[..length]);
        Ok((length, packet.from))
    }
}

impl Drop for SimUdp {
    fn drop(&mut self) {
        self.world
            .with(|traffic| traffic.mailboxes.remove(&self.address));
    }
}
