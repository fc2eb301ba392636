//! The UDP packets of a simulated network. Each has its own delay, so they arrive in any order.

use crate::poller::{Interest, IoEvent};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;

/// The most waiting packets of a socket. Further packets are lost.
const WAITING: usize = 256;

/// The length of the longest packet.
pub(super) const LONGEST: usize = 65_507;

#[derive(Clone)]
pub(super) struct Packet {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) bytes: Vec<u8>,
}

/// The sockets of UDP, by their addresses.
#[derive(Default)]
pub(super) struct Mailboxes(BTreeMap<SocketAddr, Mailbox>);

/// The packets for a socket.
#[derive(Default)]
pub(super) struct Mailbox {
    id: u64,
    machine: usize,
    /// If set, packets from other addresses are dropped.
    peer: Option<SocketAddr>,
    waiting: VecDeque<Packet>,
}

impl Mailboxes {
    pub(super) fn bind(&mut self, address: SocketAddr, machine: usize) -> io::Result<SocketAddr> {
        if self.0.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let mailbox = Mailbox {
            machine,
            ..Mailbox::default()
        };
        self.0.insert(address, mailbox);
        Ok(address)
    }

    pub(super) fn at(&mut self, address: SocketAddr) -> &mut Mailbox {
        self.0.entry(address).or_default()
    }

    /// Removes the mailbox of the machine at an address, which another life of the machine may have
    /// by now.
    pub(super) fn remove(&mut self, address: SocketAddr, machine: usize) {
        if self.machine(address) == Some(machine) {
            self.0.remove(&address);
        }
    }

    /// Returns the machine of a socket.
    pub(super) fn machine(&self, address: SocketAddr) -> Option<usize> {
        self.0.get(&address).map(|mailbox| mailbox.machine)
    }

    /// Removes all sockets of a lost machine.
    pub(super) fn lose(&mut self, machine: usize) {
        self.0.retain(|_, mailbox| mailbox.machine != machine);
    }

    pub(super) fn arrive(&mut self, packet: Packet) -> Option<IoEvent> {
        let mailbox = self.0.get_mut(&packet.to)?;
        let is_of_peer = mailbox.peer.is_none_or(|peer| peer == packet.from);
        if !is_of_peer || mailbox.waiting.len() == WAITING {
            return None;
        }
        mailbox.waiting.push_back(packet);
        Some(IoEvent::new(mailbox.id, Interest::READ))
    }
}

impl Mailbox {
    pub(super) fn watch(&mut self, id: u64) {
        self.id = id;
    }

    /// Sets the peer. Drops the waiting packets from other addresses.
    pub(super) fn connect(&mut self, peer: SocketAddr) {
        self.peer = Some(peer);
        self.waiting.retain(|packet| packet.from == peer);
    }

    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    pub(super) fn take(&mut self) -> Option<Packet> {
        self.waiting.pop_front()
    }
}
