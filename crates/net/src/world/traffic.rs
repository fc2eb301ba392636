//! The traffic of a simulated network: connections, and the bytes and packets under way.
//!
//! An operation changes its own end at once. The other end learns of it by a later event, so no
//! operation wakes another operation.

use super::faults::Faults;
use super::packets::{LONGEST, Mailboxes, Packet};
use super::signals::Signals;
use crate::poller::{Interest, IoEvent};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::mem;
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::sync::Arc;

/// The number of bytes between a write and its read.
const ROOM: usize = 1 << 16;

/// The most waiting connections of a listener.
const BACKLOG: usize = 1024;

/// The first port for sockets without a port of their own.
const FIRST_PORT: u16 = 49_152;

/// An end of a connection: end 0 has connected, end 1 was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndId {
    pub(super) connection: u64,
    pub(super) end: usize,
}

impl EndId {
    pub(super) fn other(self) -> Self {
        Self {
            end: 1 - self.end,
            ..self
        }
    }
}

/// An arrival at an end.
pub(super) enum Event {
    /// At the listener.
    Connect(u64),
    Connected(u64),
    Refused(u64),
    Bytes(EndId, Vec<u8>),
    /// The peer has ended its writes.
    End(EndId),
    Reset(EndId),
    /// The peer has read this number of bytes.
    Room(EndId, usize),
    /// The oldest event under way from this end. Events of several seats come in any order, so the
    /// order of these markers does not matter.
    OldestOf(EndId),
    /// A UDP packet.
    Packet(Packet),
    /// A signal has come.
    Raised(i32),
}

impl Event {
    /// Returns the connection; 0 for events without a connection.
    fn connection(&self) -> u64 {
        match self {
            Self::Connect(it) | Self::Connected(it) | Self::Refused(it) => *it,
            Self::Bytes(it, _) | Self::End(it) | Self::Reset(it) | Self::Room(it, _) => {
                it.connection
            }
            Self::OldestOf(it) => it.connection,
            Self::Packet(_) | Self::Raised(_) => 0,
        }
    }
}

#[derive(Default)]
pub(super) struct Traffic {
    /// The machine whose call this is, and the times of all machines.
    pub(super) present: usize,
    pub(super) nows: Vec<u64>,
    /// The names of the machines. Lives of a machine have the same name.
    pub(super) names: Vec<Arc<str>>,
    /// From machine, to machine: what is on the way waits.
    pub(super) cut_ways: BTreeSet<(Arc<str>, Arc<str>)>,
    /// From machine, to machine: how much longer the way takes, in nanoseconds.
    pub(super) delays: BTreeMap<(Arc<str>, Arc<str>), u64>,
    random: Option<fastrand::Rng>,
    faults: Faults,
    pub(super) listeners: BTreeMap<SocketAddr, Queue>,
    pub(super) connections: BTreeMap<u64, Connection>,
    made: u64,
    ports: u16,
    cut: BTreeSet<SocketAddr>,
    /// Events held until the end of a partition.
    pub(super) held: Vec<Event>,
    /// By machine, and by its time.
    pub(super) new: Vec<(usize, u64, Event)>,
    pub(super) mailboxes: Mailboxes,
    pub(super) signals: Signals,
}

#[derive(Default)]
pub(super) struct Queue {
    id: u64,
    pub(super) machine: usize,
    waiting: VecDeque<u64>,
}

pub(super) struct Connection {
    client: SocketAddr,
    server: SocketAddr,
    /// The phase of the connecting end. The accepted end is open from its accept on.
    phase: Phase,
    ends: [EndState; 2],
    /// The machines of both ends.
    pub(super) machines: [usize; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Open,
    Refused,
}

#[derive(Default)]
struct EndState {
    id: u64,
    is_gone: bool,
    is_reset: bool,
    received: VecDeque<u8>,
    /// The peer has ended its writes.
    has_ended: bool,
    reads_no_more: bool,
    writes_no_more: bool,
    /// The number of written bytes that the other end has not read.
    unread: usize,
    /// The events sent by this end, and the arrival of the last event.
    under_way: VecDeque<Event>,
    last_arrival: u64,
}

impl Traffic {
    pub(super) fn take_new(&mut self) -> Vec<(usize, u64, Event)> {
        mem::take(&mut self.new)
    }

    pub(super) fn set_faults(&mut self, seed: u64, faults: Faults) {
        self.random = Some(fastrand::Rng::with_seed(seed));
        self.faults = faults;
    }

    fn random(&mut self) -> &mut fastrand::Rng {
        self.random
            .get_or_insert_with(|| fastrand::Rng::with_seed(0))
    }

    fn latency(&mut self) -> u64 {
        let nanos = |it: std::time::Duration| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX);
        let (least, most) = (
            nanos(*self.faults.latency.start()),
            nanos(*self.faults.latency.end()),
        );
        self.random().u64(least..=most.max(least))
    }

    /// Draws whether an event with this rate in a million happens now.
    fn happens(&mut self, in_a_million: u32) -> bool {
        self.random().u32(..1_000_000) < in_a_million
    }

    /// Draws the part of `most` bytes for an operation.
    fn part(&mut self, most: usize) -> usize {
        if self.faults.partial && most > 1 {
            self.random().usize(1..=most)
        } else {
            most
        }
    }

    /// Sends an event from an end: it arrives after all earlier events of this end.
    fn send(&mut self, from: EndId, event: Event) {
        let latency = self.latency();
        let machine = self.machine_of(from.other());
        let way = self.way(self.machine_of(from), machine);
        let delay = self.delays.get(&way).copied().unwrap_or_default();
        let arrives = self
            .now_at(machine)
            .saturating_add(latency)
            .saturating_add(delay);
        if let Some(end) = self.end(from) {
            end.last_arrival = end.last_arrival.max(arrives);
            end.under_way.push_back(event);
            let at = end.last_arrival;
            self.new.push((machine, at, Event::OldestOf(from)));
        }
    }

    fn end(&mut self, at: EndId) -> Option<&mut EndState> {
        let connection = self.connections.get_mut(&at.connection)?;
        Some(&mut connection.ends[at.end])
    }

    fn open(&mut self, at: EndId) -> io::Result<&mut EndState> {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let connection = self
            .connections
            .get_mut(&at.connection)
            .ok_or_else(refused)?;
        let phase = match at.end {
            0 => connection.phase,
            _ => Phase::Open,
        };
        match phase {
            Phase::Connecting => Err(io::ErrorKind::WouldBlock.into()),
            Phase::Refused => Err(refused()),
            Phase::Open if connection.ends[at.end].is_reset => {
                Err(io::ErrorKind::ConnectionReset.into())
            }
            Phase::Open => Ok(&mut connection.ends[at.end]),
        }
    }

    fn port(&mut self) -> u16 {
        self.ports = self.ports % (u16::MAX - FIRST_PORT) + 1;
        FIRST_PORT + self.ports
    }

    pub(super) fn listen(&mut self, mut address: SocketAddr) -> io::Result<SocketAddr> {
        if address.port() == 0 {
            address.set_port(self.port());
        }
        if self.listeners.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let queue = Queue {
            machine: self.present,
            ..Queue::default()
        };
        self.listeners.insert(address, queue);
        Ok(address)
    }

    pub(super) fn watch_listener(&mut self, address: SocketAddr, id: u64) {
        if let Some(queue) = self.listeners.get_mut(&address) {
            queue.id = id;
        }
    }

    pub(super) fn accept(&mut self, address: SocketAddr) -> io::Result<(EndId, SocketAddr)> {
        let queue = self.listeners.get_mut(&address);
        let waiting = queue.and_then(|queue| queue.waiting.pop_front());
        let connection = waiting.ok_or(io::ErrorKind::WouldBlock)?;
        let client = self.connections.get(&connection).map(|it| it.client);
        Ok((EndId { connection, end: 1 }, client.unwrap_or(address)))
    }

    pub(super) fn close_listener(&mut self, address: SocketAddr) {
        // Another life of the machine may have the address by now.
        let machine = self.present;
        let own = self.listeners.get(&address);
        if own.is_none_or(|queue| queue.machine != machine) {
            return;
        }
        let queue = self.listeners.remove(&address).unwrap_or_default();
        for connection in queue.waiting {
            self.close(EndId { connection, end: 1 }, true);
        }
    }

    pub(super) fn connect(&mut self, server: SocketAddr) -> EndId {
        self.made += 1;
        let at = EndId {
            connection: self.made,
            end: 0,
        };
        let client = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), self.port());
        let listener = self.listeners.get(&server).map(|queue| queue.machine);
        let connection = Connection {
            client,
            server,
            phase: Phase::Connecting,
            ends: Default::default(),
            machines: [self.present, listener.unwrap_or(self.present)],
        };
        self.connections.insert(self.made, connection);
        self.send(at, Event::Connect(self.made));
        at
    }

    /// Makes an established connection.
    pub(super) fn pair(&mut self) -> [EndId; 2] {
        self.made += 1;
        let address = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let connection = Connection {
            client: address,
            server: address,
            phase: Phase::Open,
            ends: Default::default(),
            machines: [self.present; 2],
        };
        self.connections.insert(self.made, connection);
        let connection = self.made;
        [0, 1].map(|end| EndId { connection, end })
    }

    pub(super) fn watch(&mut self, at: EndId, id: u64) {
        if let Some(end) = self.end(at) {
            end.id = id;
        }
    }

    /// Fails with `WouldBlock` until the connection is established.
    pub(super) fn connected(&mut self, at: EndId) -> io::Result<()> {
        self.open(at).map(|_| ())
    }

    /// Returns the addresses of the end and of its peer.
    pub(super) fn addresses(&self, at: EndId) -> io::Result<(SocketAddr, SocketAddr)> {
        let connection = self.connections.get(&at.connection);
        let connection = connection.ok_or(io::ErrorKind::NotConnected)?;
        Ok(match at.end {
            0 => (connection.client, connection.server),
            _ => (connection.server, connection.client),
        })
    }

    pub(super) fn read(&mut self, at: EndId, buffer: &mut [u8], takes: bool) -> io::Result<usize> {
        let end = self.open(at)?;
        if end.reads_no_more || buffer.is_empty() {
            return Ok(0);
        }
        let most = end.received.len().min(buffer.len());
        if most == 0 {
            return match end.has_ended {
                true => Ok(0),
                false => Err(io::ErrorKind::WouldBlock.into()),
            };
        }
        let part = self.part(most);
        let end = self.open(at)?;
        for (to, from) in buffer.iter_mut().zip(end.received.iter().take(part)) {
            *to = *from;
        }
        if takes {
            end.received.drain(..part);
            self.send(at, Event::Room(at.other(), part));
        }
        Ok(part)
    }

    pub(super) fn write(&mut self, at: EndId, bytes: &[u8]) -> io::Result<usize> {
        let end = self.open(at)?;
        if end.writes_no_more {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let most = bytes.len().min(ROOM - end.unread);
        if bytes.is_empty() {
            return Ok(0);
        }
        if most == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.happens(self.faults.resets) {
            self.break_off(at);
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let part = self.part(most);
        self.open(at)?.unread += part;
        self.send(at, Event::Bytes(at.other(), bytes[..part].to_vec()));
        Ok(part)
    }

    pub(super) fn shutdown(&mut self, at: EndId, how: Shutdown) -> io::Result<()> {
        let end = self.open(at)?;
        if how != Shutdown::Write {
            end.reads_no_more = true;
        }
        if how != Shutdown::Read && !mem::replace(&mut end.writes_no_more, true) {
            self.send(at, Event::End(at.other()));
        }
        Ok(())
    }

    /// Breaks the connection from an end.
    fn break_off(&mut self, at: EndId) {
        if let Some(end) = self.end(at) {
            end.is_reset = true;
            end.received.clear();
        }
        self.send(at, Event::Reset(at.other()));
    }

    /// Breaks the connection before the close of an end.
    pub(super) fn abort(&mut self, at: EndId) {
        self.break_off(at);
        if let Some(end) = self.end(at) {
            end.writes_no_more = true;
        }
    }

    /// Closes an end. Breaks the connection if the end has unread bytes, or `breaks`.
    pub(super) fn close(&mut self, at: EndId, breaks: bool) {
        let Some(end) = self.end(at) else { return };
        end.is_gone = true;
        if breaks || !end.received.is_empty() {
            self.break_off(at);
        } else if !mem::replace(&mut end.writes_no_more, true) {
            self.send(at, Event::End(at.other()));
        }
        self.forget(at.connection);
    }

    fn forget(&mut self, connection: u64) {
        let is_over = |it: &Connection| it.ends.iter().all(|end| end.is_gone);
        if self.connections.get(&connection).is_some_and(is_over) {
            self.connections.remove(&connection);
        }
    }

    pub(super) fn partition(&mut self, listener: SocketAddr, is_cut: bool) {
        if is_cut {
            self.cut.insert(listener);
        } else if self.cut.remove(&listener) {
            self.let_go();
        }
    }

    pub(super) fn reset_all(&mut self, listener: SocketAddr) {
        let of = self.connections.iter().filter(|it| it.1.server == listener);
        let of: Vec<u64> = of.map(|(&connection, _)| connection).collect();
        for connection in of {
            for end in [0, 1] {
                self.put_now(Event::Reset(EndId { connection, end }));
            }
        }
    }

    /// Carries out an arrival. Adds the perhaps ready sockets to `ready`.
    pub(super) fn happen(&mut self, event: Event, ready: &mut Vec<IoEvent>) {
        let id = match event {
            Event::Packet(packet) => return ready.extend(self.arrive_packet(packet)),
            Event::Raised(signal) => return self.signals.arrive(signal, ready),
            ref event => event.connection(),
        };
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        let server = connection.server;
        if self.cut.contains(&server) || self.is_held(&event) {
            self.held.push(event);
            return;
        }
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        match event {
            Event::OldestOf(at) => {
                if let Some(oldest) = connection.ends[at.end].under_way.pop_front() {
                    self.happen(oldest, ready);
                }
            }
            Event::Connect(_) => self.arrive(id, ready),
            Event::Connected(_) | Event::Refused(_) => {
                connection.phase = match event {
                    Event::Connected(_) => Phase::Open,
                    _ => Phase::Refused,
                };
                ready.push(IoEvent::new(connection.ends[0].id, Interest::BOTH));
            }
            Event::Bytes(at, bytes) => {
                let end = &mut connection.ends[at.end];
                if end.is_gone {
                    self.break_off(at);
                } else if !end.is_reset {
                    end.received.extend(bytes);
                    ready.push(IoEvent::new(end.id, Interest::READ));
                }
            }
            Event::End(at) => {
                let end = &mut connection.ends[at.end];
                end.has_ended = true;
                ready.push(IoEvent::new(end.id, Interest::READ));
            }
            Event::Reset(at) => {
                if at.end == 0 && connection.phase == Phase::Connecting {
                    connection.phase = Phase::Refused;
                }
                let end = &mut connection.ends[at.end];
                end.is_reset = true;
                end.received.clear();
                ready.push(IoEvent::new(end.id, Interest::BOTH));
            }
            Event::Room(at, bytes) => {
                let end = &mut connection.ends[at.end];
                end.unread -= bytes;
                ready.push(IoEvent::new(end.id, Interest::WRITE));
            }
            // These have arrived above.
            Event::Packet(_) | Event::Raised(_) => {}
        }
    }

    pub(super) fn bind(&mut self, mut address: SocketAddr) -> io::Result<SocketAddr> {
        if address.port() == 0 {
            address.set_port(self.port());
        }
        self.mailboxes.bind(address, self.present)
    }

    pub(super) fn send_packet(&mut self, packet: &Packet) -> io::Result<usize> {
        let length = packet.bytes.len();
        if length > LONGEST {
            let text = format!("a UDP packet must have at most {LONGEST} bytes, not {length}");
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
            let machine = self.mailboxes.machine(packet.to).unwrap_or(self.present);
            let way = self.way(self.present, machine);
            if self.cut_ways.contains(&way) {
                continue;
            }
            let delay = self.delays.get(&way).copied().unwrap_or_default();
            let latency = self.latency().saturating_add(delay);
            let at = self.now_at(machine).saturating_add(latency);
            self.new.push((machine, at, Event::Packet(packet.clone())));
        }
        Ok(length)
    }

    fn arrive_packet(&mut self, packet: Packet) -> Option<IoEvent> {
        if self.cut.contains(&packet.from) || self.cut.contains(&packet.to) {
            return None;
        }
        self.mailboxes.arrive(packet)
    }

    /// Raises a signal, which comes as soon as the simulation moves.
    #[cfg_attr(not(unix), allow(dead_code, reason = "there are no signals"))]
    pub(super) fn raise(&mut self, signal: i32) {
        self.put_now(Event::Raised(signal));
    }

    /// Delivers a connection to its listener, or refuses the connection where the queue is full.
    fn arrive(&mut self, id: u64, ready: &mut Vec<IoEvent>) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let accepted = EndId {
            connection: id,
            end: 1,
        };
        let queue = self.listeners.get_mut(&connection.server);
        match queue.filter(|queue| queue.waiting.len() < BACKLOG) {
            Some(queue) => {
                queue.waiting.push_back(id);
                ready.push(IoEvent::new(queue.id, Interest::READ));
                self.send(accepted, Event::Connected(id));
            }
            None => {
                connection.ends[1].is_gone = true;
                self.send(accepted, Event::Refused(id));
                self.forget(id);
            }
        }
    }
}
