//! The connections of a simulated network, and what is under way on them.
//!
//! An operation changes its own end at once. What concerns the other end is an event that comes
//! later, so that no operation wakes another.

use super::Faults;
use super::datagrams::{Mailbox, Packet};
use super::signals::Watched;
use crate::poller::Sides;
use crate::ready::Ready;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::mem;
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::sync::Weak;

/// So many bytes fit between a write and its read.
const ROOM: usize = 1 << 16;

/// So many connections wait at a listener until they are accepted.
const BACKLOG: usize = 1024;

/// The first port that is given to those that ask for none.
const FIRST_PORT: u16 = 49_152;

/// Which end of which connection: 0 has connected, 1 was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) connection: u64,
    pub(super) end: usize,
}

impl Place {
    fn other(self) -> Self {
        Self {
            end: 1 - self.end,
            ..self
        }
    }
}

/// What arrives at an end.
pub(super) enum Event {
    /// At the listener.
    Connect(u64),
    Connected(u64),
    Refused(u64),
    Bytes(Place, Vec<u8>),
    /// The other side writes no more.
    End(Place),
    Reset(Place),
    /// The other side has read so much.
    Room(Place, usize),
    /// The oldest that this end has sent, and that is under way. Which of these comes when does not
    /// matter: events of several seats come in any order.
    OldestOf(Place),
    /// A packet of UDP.
    Packet(Packet),
    /// A signal has come.
    Raised(i32),
}

impl Event {
    /// None is 0.
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

/// A socket may be ready on those sides.
pub(super) struct Told(pub(super) Weak<Ready>, pub(super) Sides);

pub(super) const READS: Sides = Sides {
    read: true,
    write: false,
};
const WRITES: Sides = Sides {
    read: false,
    write: true,
};
const BOTH: Sides = Sides {
    read: true,
    write: true,
};

#[derive(Default)]
pub(super) struct Traffic {
    pub(super) now: u64,
    random: Option<fastrand::Rng>,
    pub(super) faults: Faults,
    listeners: BTreeMap<SocketAddr, Queue>,
    connections: BTreeMap<u64, Connection>,
    made: u64,
    ports: u16,
    pub(super) cut: BTreeSet<SocketAddr>,
    /// What waits for the end of a partition.
    held: Vec<Event>,
    pub(super) new: Vec<(u64, Event)>,
    pub(super) mailboxes: BTreeMap<SocketAddr, Mailbox>,
    pub(super) signals: BTreeMap<u64, Watched>,
}

#[derive(Default)]
struct Queue {
    ready: Weak<Ready>,
    waiting: VecDeque<u64>,
}

struct Connection {
    client: SocketAddr,
    server: SocketAddr,
    /// What the end that connects knows. The other one is open from its accept.
    phase: Phase,
    ends: [EndState; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Open,
    Refused,
}

#[derive(Default)]
struct EndState {
    ready: Weak<Ready>,
    is_gone: bool,
    is_reset: bool,
    received: VecDeque<u8>,
    /// No more comes.
    has_ended: bool,
    reads_no_more: bool,
    writes_no_more: bool,
    /// Bytes that this end has written, and the other has not read.
    unread: usize,
    /// What this end has sent, and when the last of it arrives.
    under_way: VecDeque<Event>,
    last_arrival: u64,
}

impl Traffic {
    pub(super) fn take_new(&mut self) -> Vec<(u64, Event)> {
        mem::take(&mut self.new)
    }

    pub(super) fn set_faults(&mut self, seed: u64, faults: Faults) {
        self.random = Some(fastrand::Rng::with_seed(seed));
        self.faults = faults;
    }

    pub(super) fn random(&mut self) -> &mut fastrand::Rng {
        self.random
            .get_or_insert_with(|| fastrand::Rng::with_seed(0))
    }

    pub(super) fn latency(&mut self) -> u64 {
        let nanos = |it: std::time::Duration| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX);
        let (least, most) = (
            nanos(*self.faults.latency.start()),
            nanos(*self.faults.latency.end()),
        );
        self.random().u64(least..=most.max(least))
    }

    /// Whether something does that happens so often in a million times.
    pub(super) fn happens(&mut self, in_a_million: u32) -> bool {
        self.random().u32(..1_000_000) < in_a_million
    }

    /// How much of it an operation moves.
    fn part(&mut self, most: usize) -> usize {
        if self.faults.partial && most > 1 {
            self.random().usize(1..=most)
        } else {
            most
        }
    }

    /// Has an event arrive that this end sends, behind all that it has sent before.
    fn send(&mut self, from: Place, event: Event) {
        let arrives = self.now.saturating_add(self.latency());
        if let Some(end) = self.end(from) {
            end.last_arrival = end.last_arrival.max(arrives);
            end.under_way.push_back(event);
            let at = end.last_arrival;
            self.new.push((at, Event::OldestOf(from)));
        }
    }

    fn end(&mut self, place: Place) -> Option<&mut EndState> {
        let connection = self.connections.get_mut(&place.connection)?;
        Some(&mut connection.ends[place.end])
    }

    fn open(&mut self, place: Place) -> io::Result<&mut EndState> {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let connection = self
            .connections
            .get_mut(&place.connection)
            .ok_or_else(refused)?;
        let phase = match place.end {
            0 => connection.phase,
            _ => Phase::Open,
        };
        match phase {
            Phase::Connecting => Err(io::ErrorKind::WouldBlock.into()),
            Phase::Refused => Err(refused()),
            Phase::Open if connection.ends[place.end].is_reset => {
                Err(io::ErrorKind::ConnectionReset.into())
            }
            Phase::Open => Ok(&mut connection.ends[place.end]),
        }
    }

    pub(super) fn port(&mut self) -> u16 {
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
        self.listeners.insert(address, Queue::default());
        Ok(address)
    }

    pub(super) fn watch_listener(&mut self, address: SocketAddr, ready: Weak<Ready>) {
        if let Some(queue) = self.listeners.get_mut(&address) {
            queue.ready = ready;
        }
    }

    pub(super) fn accept(&mut self, address: SocketAddr) -> io::Result<(Place, SocketAddr)> {
        let queue = self.listeners.get_mut(&address);
        let waiting = queue.and_then(|queue| queue.waiting.pop_front());
        let connection = waiting.ok_or(io::ErrorKind::WouldBlock)?;
        let client = self.connections.get(&connection).map(|it| it.client);
        Ok((Place { connection, end: 1 }, client.unwrap_or(address)))
    }

    pub(super) fn close_listener(&mut self, address: SocketAddr) {
        let queue = self.listeners.remove(&address).unwrap_or_default();
        for connection in queue.waiting {
            self.close(Place { connection, end: 1 }, true);
        }
    }

    pub(super) fn connect(&mut self, server: SocketAddr) -> Place {
        self.made += 1;
        let place = Place {
            connection: self.made,
            end: 0,
        };
        let client = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), self.port());
        let connection = Connection {
            client,
            server,
            phase: Phase::Connecting,
            ends: Default::default(),
        };
        self.connections.insert(self.made, connection);
        self.send(place, Event::Connect(self.made));
        place
    }

    /// A connection that stands from the beginning.
    pub(super) fn pair(&mut self) -> [Place; 2] {
        self.made += 1;
        let address = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let connection = Connection {
            client: address,
            server: address,
            phase: Phase::Open,
            ends: Default::default(),
        };
        self.connections.insert(self.made, connection);
        let connection = self.made;
        [0, 1].map(|end| Place { connection, end })
    }

    pub(super) fn watch(&mut self, place: Place, ready: Weak<Ready>) {
        if let Some(end) = self.end(place) {
            end.ready = ready;
        }
    }

    /// Whether the connection stands.
    pub(super) fn connected(&mut self, place: Place) -> io::Result<()> {
        self.open(place).map(|_| ())
    }

    /// The addresses of the end and of the other one.
    pub(super) fn addresses(&self, place: Place) -> io::Result<(SocketAddr, SocketAddr)> {
        let connection = self.connections.get(&place.connection);
        let connection = connection.ok_or(io::ErrorKind::NotConnected)?;
        Ok(match place.end {
            0 => (connection.client, connection.server),
            _ => (connection.server, connection.client),
        })
    }

    pub(super) fn read(
        &mut self,
        place: Place,
        buffer: &mut [u8],
        takes: bool,
    ) -> io::Result<usize> {
        let end = self.open(place)?;
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
        let end = self.open(place)?;
        for (to, from) in buffer.iter_mut().zip(end.received.iter().take(part)) {
            *to = *from;
        }
        if takes {
            end.received.drain(..part);
            self.send(place, Event::Room(place.other(), part));
        }
        Ok(part)
    }

    pub(super) fn write(&mut self, place: Place, bytes: &[u8]) -> io::Result<usize> {
        let end = self.open(place)?;
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
            self.break_off(place);
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let part = self.part(most);
        self.open(place)?.unread += part;
        self.send(place, Event::Bytes(place.other(), bytes[..part].to_vec()));
        Ok(part)
    }

    pub(super) fn shutdown(&mut self, place: Place, how: Shutdown) -> io::Result<()> {
        let end = self.open(place)?;
        if how != Shutdown::Write {
            end.reads_no_more = true;
        }
        if how != Shutdown::Read && !mem::replace(&mut end.writes_no_more, true) {
            self.send(place, Event::End(place.other()));
        }
        Ok(())
    }

    /// An end breaks the connection.
    fn break_off(&mut self, place: Place) {
        if let Some(end) = self.end(place) {
            end.is_reset = true;
            end.received.clear();
        }
        self.send(place, Event::Reset(place.other()));
    }

    /// An end breaks the connection, and is about to go.
    pub(super) fn abort(&mut self, place: Place) {
        self.break_off(place);
        if let Some(end) = self.end(place) {
            end.writes_no_more = true;
        }
    }

    /// An end is gone. It breaks the connection if it has not read all that has come, or `breaks`.
    pub(super) fn close(&mut self, place: Place, breaks: bool) {
        let Some(end) = self.end(place) else { return };
        end.is_gone = true;
        if breaks || !end.received.is_empty() {
            self.break_off(place);
        } else if !mem::replace(&mut end.writes_no_more, true) {
            self.send(place, Event::End(place.other()));
        }
        self.forget(place.connection);
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
            // In the order in which they came; those that are cut elsewhere wait again.
            for event in mem::take(&mut self.held) {
                self.new.push((self.now, event));
            }
        }
    }

    pub(super) fn reset_all(&mut self, listener: SocketAddr) {
        let of = self.connections.iter().filter(|it| it.1.server == listener);
        let of: Vec<u64> = of.map(|(&connection, _)| connection).collect();
        for connection in of {
            for end in [0, 1] {
                self.new
                    .push((self.now, Event::Reset(Place { connection, end })));
            }
        }
    }

    /// Carries out what arrives.
    pub(super) fn happen(&mut self, event: Event, told: &mut Vec<Told>) {
        let id = match event {
            Event::Packet(packet) => return told.extend(self.arrive_packet(packet)),
            Event::Raised(signal) => return self.arrive_signal(signal, told),
            ref event => event.connection(),
        };
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if self.cut.contains(&connection.server) {
            self.held.push(event);
            return;
        }
        match event {
            Event::OldestOf(place) => {
                if let Some(oldest) = connection.ends[place.end].under_way.pop_front() {
                    self.happen(oldest, told);
                }
            }
            Event::Connect(_) => self.arrive(id, told),
            Event::Connected(_) | Event::Refused(_) => {
                connection.phase = match event {
                    Event::Connected(_) => Phase::Open,
                    _ => Phase::Refused,
                };
                told.push(Told(connection.ends[0].ready.clone(), BOTH));
            }
            Event::Bytes(place, bytes) => {
                let end = &mut connection.ends[place.end];
                if end.is_gone {
                    self.break_off(place);
                } else if !end.is_reset {
                    end.received.extend(bytes);
                    told.push(Told(end.ready.clone(), READS));
                }
            }
            Event::End(place) => {
                let end = &mut connection.ends[place.end];
                end.has_ended = true;
                told.push(Told(end.ready.clone(), READS));
            }
            Event::Reset(place) => {
                let end = &mut connection.ends[place.end];
                end.is_reset = true;
                end.received.clear();
                told.push(Told(end.ready.clone(), BOTH));
            }
            Event::Room(place, bytes) => {
                let end = &mut connection.ends[place.end];
                end.unread -= bytes;
                told.push(Told(end.ready.clone(), WRITES));
            }
            // They have arrived above.
            Event::Packet(_) | Event::Raised(_) => {}
        }
    }

    /// A connection arrives at its listener.
    fn arrive(&mut self, id: u64, told: &mut Vec<Told>) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let queue = self.listeners.get_mut(&connection.server);
        match queue.filter(|queue| queue.waiting.len() < BACKLOG) {
            Some(queue) => {
                queue.waiting.push_back(id);
                told.push(Told(queue.ready.clone(), READS));
                self.send(
                    Place {
                        connection: id,
                        end: 1,
                    },
                    Event::Connected(id),
                );
            }
            None => {
                connection.ends[1].is_gone = true;
                self.send(
                    Place {
                        connection: id,
                        end: 1,
                    },
                    Event::Refused(id),
                );
                self.forget(id);
            }
        }
    }
}
