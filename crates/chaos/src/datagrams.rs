//! A proxy of datagrams.

use crate::faults::{Faults, Way, happens};
use fastrand::Rng;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The longest datagram.
const LONGEST: usize = 65_536;

/// How often the thread looks at the clock.
const TICK: Duration = Duration::from_millis(1);

/// The most clients. Later clients are not heard.
const CLIENTS: usize = 1024;

/// The most datagrams under way. More are lost.
const UNDER_WAY: usize = 1 << 14;

/// Passes datagrams on, with faults: lost, repeated, late (and so out of order), held. Dropping it
/// ends its thread.
#[derive(Debug)]
pub struct Datagrams {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    faults: [Faults; 2],
    flips: [u32; 2],
    taken: u64,
    is_over: bool,
}

impl Datagrams {
    /// Creates a proxy in front of an address, on loopback at a port of its own. Chance comes from
    /// the seed.
    ///
    /// # Errors
    /// The system has no port.
    pub fn to(target: SocketAddr, seed: u64) -> io::Result<Self> {
        let front = UdpSocket::bind("127.0.0.1:0")?;
        front.set_nonblocking(true)?;
        let address = front.local_addr()?;
        let state = Arc::default();
        let passing = Passing {
            front,
            target,
            backs: HashMap::new(),
            late: BTreeMap::new(),
            number: 0,
            random: Rng::with_seed(seed),
        };
        let shared = Arc::clone(&state);
        let thread = thread::spawn(move || passing.run(&shared));
        Ok(Self {
            address,
            state,
            thread: Some(thread),
        })
    }

    /// Returns the address to which clients send.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the faults of a way.
    pub fn faults(&self, way: Way, faults: Faults) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.faults[way.index()] = faults;
    }

    /// Returns the number of datagrams received so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.taken
    }

    /// Flips a bit in the next datagram of a way.
    pub fn flip(&self, way: Way) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.flips[way.index()] += 1;
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_over = true;
        drop(state);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// The client of a datagram, and the way.
#[derive(Clone, Copy)]
struct Hop {
    client: SocketAddr,
    way: Way,
}

struct Passing {
    front: UdpSocket,
    target: SocketAddr,
    /// A socket for each client, so that answers find it.
    backs: HashMap<SocketAddr, UdpSocket>,
    /// By the time when they are due, and a number.
    late: BTreeMap<(Instant, u64), (Hop, Vec<u8>)>,
    number: u64,
    random: Rng,
}

impl Passing {
    fn run(mut self, state: &Mutex<State>) {
        let mut buffer = vec![0; LONGEST];
        loop {
            let is_over = state.lock().unwrap_or_else(PoisonError::into_inner).is_over;
            if is_over {
                return;
            }
            let taken = self.take(&mut buffer, state);
            self.give();
            if !taken {
                thread::sleep(TICK);
            }
        }
    }

    /// Takes a datagram of each socket. False: none has come.
    fn take(&mut self, buffer: &mut [u8], state: &Mutex<State>) -> bool {
        let mut come = Vec::new();
        if let Ok((length, client)) = self.front.recv_from(buffer) {
            let way = Way::There;
            if self.opened(client) {
                come.push((Hop { client, way }, buffer[..length].to_vec()));
            }
        }
        for (client, back) in &self.backs {
            if let Ok(length) = back.recv(buffer) {
                let (client, way) = (*client, Way::Back);
                come.push((Hop { client, way }, buffer[..length].to_vec()));
            }
        }
        let has_come = !come.is_empty();
        for (hop, bytes) in come {
            self.judge(hop, bytes, state);
        }
        has_come
    }

    fn opened(&mut self, client: SocketAddr) -> bool {
        if self.backs.contains_key(&client) {
            return true;
        }
        let open = || {
            let back = UdpSocket::bind("127.0.0.1:0")?;
            back.connect(self.target)?;
            back.set_nonblocking(true)?;
            io::Result::Ok(back)
        };
        match open() {
            Ok(back) if self.backs.len() < CLIENTS => {
                self.backs.insert(client, back);
                true
            }
            _ => false,
        }
    }

    fn judge(&mut self, hop: Hop, mut bytes: Vec<u8>, state: &Mutex<State>) {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let faults = state.faults[hop.way.index()];
        state.taken += 1;
        if state.flips[hop.way.index()] > 0 && !bytes.is_empty() {
            state.flips[hop.way.index()] -= 1;
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
        }
        drop(state);
        // A datagram that is held is as good as lost.
        let is_lost = faults.vanishes || faults.holds || happens(&mut self.random, faults.drop);
        if is_lost || self.late.len() >= UNDER_WAY {
            return;
        }
        let times = 1 + usize::from(happens(&mut self.random, faults.repeat));
        for _ in 0..times {
            self.number += 1;
            let due = Instant::now() + faults.late(&mut self.random) + faults.takes(bytes.len());
            self.late.insert((due, self.number), (hop, bytes.clone()));
        }
    }

    /// Sends the datagrams of this moment.
    fn give(&mut self) {
        while let Some(entry) = self.late.first_entry() {
            if entry.key().0 > Instant::now() {
                return;
            }
            let (hop, bytes) = entry.remove();
            // A refused datagram is lost.
            match hop.way {
                Way::There => _ = self.backs.get(&hop.client).map(|back| back.send(&bytes)),
                Way::Back => _ = self.front.send_to(&bytes, hop.client),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns both ends, with a proxy between.
    fn through() -> (Datagrams, UdpSocket, UdpSocket) {
        let [client, server] = [0; 2].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let proxy = Datagrams::to(server.local_addr().unwrap(), 1).unwrap();
        client.connect(proxy.address()).unwrap();
        for end in [&client, &server] {
            end.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        }
        (proxy, client, server)
    }

    #[test]
    fn datagrams_go_both_ways_and_are_lost_doubled_flipped() {
        let (proxy, client, server) = through();
        let mut buffer = [0; 8];
        client.send(&[1]).unwrap();
        let (_, from) = server.recv_from(&mut buffer).unwrap();
        server.send_to(&[2], from).unwrap();
        assert_eq!((client.recv(&mut buffer).unwrap(), buffer[0]), (1, 2));
        let faults = |drop, repeat| Faults {
            drop,
            repeat,
            ..Faults::default()
        };
        proxy.faults(Way::There, faults(1000, 0));
        client.send(&[3]).unwrap();
        // The answer comes behind the lost datagram.
        server.send_to(&[4], from).unwrap();
        assert_eq!((client.recv(&mut buffer).unwrap(), buffer[0]), (1, 4));
        proxy.faults(Way::There, faults(0, 1000));
        proxy.flip(Way::There);
        client.send(&[8]).unwrap();
        let twice = [(); 2].map(|()| (server.recv(&mut buffer).unwrap(), buffer[0]));
        assert_eq!(twice, [(1, 12); 2], "the third datagram was lost");
    }

    #[test]
    fn a_late_datagram_is_overtaken() {
        let (proxy, client, server) = through();
        let late = Faults {
            delay: Duration::from_secs(3600),
            ..Faults::default()
        };
        proxy.faults(Way::There, late);
        client.send(&[1]).unwrap();
        while proxy.taken() == 0 {
            thread::yield_now();
        }
        proxy.faults(Way::There, Faults::default());
        client.send(&[2]).unwrap();
        let mut buffer = [0; 8];
        assert_eq!((server.recv(&mut buffer).unwrap(), buffer[0]), (1, 2));
    }
}
