//! A proxy of TCP connections.
//!
//! Each connection has two ways, and each way two threads: a reader, which takes the bytes and says
//! when they are due, and a writer. So a delay costs no throughput. At most 64 pieces wait between
//! both.

use crate::faults::{Faults, Way};
use fastrand::Rng;
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Scope};
use std::time::{Duration, Instant};

/// The most pieces between a reader and its writer.
const PIECES: usize = 64;

/// The most bytes of a piece.
const PIECE: usize = 16 << 10;

/// Passes the bytes of connections on, with faults. Dropping it ends all connections, and waits for
/// its threads.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    target: Option<SocketAddr>,
    refuses: bool,
    is_over: bool,
    faults: [Faults; 2],
    /// Bits to be flipped.
    flips: [u32; 2],
    /// Bytes until the connection breaks, perhaps within a frame.
    left: Option<usize>,
    open: Vec<[TcpStream; 2]>,
    broken: usize,
    passed: [u64; 2],
    random: Rng,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the way holds no bytes.
    fn until_passing(&self, way: Way) -> MutexGuard<'_, State> {
        let held = |state: &mut State| state.faults[way.index()].holds && !state.is_over;
        let state = self.changed.wait_while(self.state(), held);
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// Creates a proxy in front of an address, on loopback at a port of its own.
    ///
    /// # Panics
    /// If the system has no port.
    #[must_use]
    pub fn to(target: SocketAddr) -> Self {
        let proxy = Self::new(0);
        proxy.aim(target);
        proxy
    }

    /// Creates a proxy that refuses connections until [`aim`](Self::aim) says their target. Chance
    /// comes from the seed.
    ///
    /// # Panics
    /// If the system has no port.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the system has a port");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                target: None,
                refuses: false,
                is_over: false,
                faults: [Faults::default(); 2],
                flips: [0; 2],
                left: None,
                open: Vec::new(),
                broken: 0,
                passed: [0; 2],
                random: Rng::with_seed(seed),
            }),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        let thread = thread::spawn(move || accept(&listener, &accepting));
        Self {
            address,
            shared,
            thread: Some(thread),
        }
    }

    /// Returns the address to which clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets where connections lead from now on.
    pub fn aim(&self, target: SocketAddr) {
        self.shared.state().target = Some(target);
    }

    /// Sets the faults of a way, for the open connections and for later ones.
    pub fn faults(&self, way: Way, faults: Faults) {
        self.shared.state().faults[way.index()] = faults;
        self.shared.changed.notify_all();
    }

    /// Ends the faults of both ways, and takes connections again.
    pub fn calm(&self) {
        let mut state = self.shared.state();
        state.faults = [Faults::default(); 2];
        state.flips = [0; 2];
        state.left = None;
        state.refuses = false;
        self.shared.changed.notify_all();
    }

    /// Closes new connections at once, or takes them again.
    pub fn refuse(&self, refuses: bool) {
        self.shared.state().refuses = refuses;
    }

    /// Ends all connections.
    pub fn cut(&self) {
        let mut state = self.shared.state();
        state.broken += 1;
        state.end(|stream| _ = stream.shutdown(Shutdown::Both));
    }

    /// Resets all connections: bytes under way are lost, and each side has an error.
    pub fn reset(&self) {
        let mut state = self.shared.state();
        state.broken += 1;
        state.end(|stream| {
            // Without a linger the close sends a reset. The threads have clones, so it takes a
            // shutdown as well.
            _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
            _ = stream.shutdown(Shutdown::Both);
        });
    }

    /// Ends a way of all connections. The other way goes on.
    pub fn half_close(&self, way: Way) {
        let mut state = self.shared.state();
        state.broken += 1;
        for ends in &state.open {
            // Fails if the connection is broken already.
            _ = ends[1 - way.index()].shutdown(Shutdown::Write);
        }
    }

    /// Breaks the connection after this number of further bytes on the way there.
    pub fn cut_after(&self, bytes: usize) {
        self.shared.state().left = Some(bytes);
    }

    /// Flips a bit in the next bytes of a way.
    pub fn flip(&self, way: Way) {
        self.shared.state().flips[way.index()] += 1;
    }

    /// Returns how often connections were broken.
    #[must_use]
    pub fn broken(&self) -> usize {
        self.shared.state().broken
    }

    /// Returns the number of passed bytes, by way.
    #[must_use]
    pub fn passed(&self) -> [u64; 2] {
        self.shared.state().passed
    }
}

impl State {
    fn end(&mut self, end: impl Fn(&TcpStream)) {
        for stream in self.open.drain(..).flatten() {
            // Fails if the connection is broken already.
            end(&stream);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.is_over = true;
            state.end(|stream| _ = stream.shutdown(Shutdown::Both));
        }
        self.shared.changed.notify_all();
        // Wakes the accepting thread.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    thread::scope(|scope| {
        for client in listener.incoming().flatten() {
            let (target, is_over) = {
                let state = shared.state();
                (state.target.filter(|_| !state.refuses), state.is_over)
            };
            if is_over {
                return;
            }
            if let Some(server) = target.and_then(|target| TcpStream::connect(target).ok()) {
                // A connection whose descriptors the system refuses is closed.
                let _closed = begin(scope, shared, client, server);
            }
        }
    });
}

fn begin<'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &Arc<Shared>,
    client: TcpStream,
    server: TcpStream,
) -> std::io::Result<()> {
    _ = client.set_nodelay(true);
    _ = server.set_nodelay(true);
    let both = [client.try_clone()?, server.try_clone()?];
    let ends = [
        (client.try_clone()?, server.try_clone()?, Way::There),
        (server, client, Way::Back),
    ];
    {
        let mut state = shared.state();
        if state.is_over {
            return Ok(());
        }
        // Connections whose both sides have ended have no peers any more. Where one side has, bytes
        // may be under way to the other still.
        let is_open = |side: &TcpStream| side.peer_addr().is_ok();
        state.open.retain(|both| both.iter().any(is_open));
        state.open.push(both);
    }
    for (from, to, way) in ends {
        let (sender, receiver) = sync_channel(PIECES);
        let reading = Arc::clone(shared);
        scope.spawn(move || read(from, way, &reading, &sender));
        scope.spawn(move || write(to, &receiver));
    }
    Ok(())
}

/// Bytes, and the time when the writer writes the bytes.
struct Piece {
    bytes: Vec<u8>,
    due: Instant,
    faults: Faults,
    is_last: bool,
}

fn read(mut from: TcpStream, way: Way, shared: &Shared, pieces: &SyncSender<Piece>) {
    let mut buffer = [0; PIECE];
    loop {
        drop(shared.until_passing(way));
        let Ok(length @ 1..) = from.read(&mut buffer) else {
            break;
        };
        // The way may hold bytes from now on.
        let mut state = shared.until_passing(way);
        let mut bytes = buffer[..length].to_vec();
        let mut is_last = false;
        if state.flips[way.index()] > 0 {
            state.flips[way.index()] -= 1;
            bytes[length / 2] ^= 4;
        }
        if way == Way::There
            && let Some(left) = state.left
        {
            bytes.truncate(left);
            is_last = left <= length;
            state.left = (!is_last).then(|| left - length);
            state.broken += usize::from(is_last);
        }
        let faults = state.faults[way.index()];
        state.passed[way.index()] += bytes.len() as u64;
        let due = Instant::now() + faults.late(&mut state.random);
        drop(state);
        let piece = Piece {
            bytes,
            due,
            faults,
            is_last,
        };
        if !faults.vanishes && pieces.send(piece).is_err() || is_last {
            break;
        }
    }
    _ = from.shutdown(Shutdown::Read);
}

fn write(mut to: TcpStream, pieces: &Receiver<Piece>) {
    for piece in pieces {
        thread::sleep(piece.due.saturating_duration_since(Instant::now()));
        let most = piece.faults.piece.unwrap_or(PIECE).max(1);
        for part in piece.bytes.chunks(most) {
            if to.write_all(part).is_err() {
                _ = to.shutdown(Shutdown::Both);
                return;
            }
            thread::sleep(piece.faults.takes(part.len()));
            if piece.faults.piece.is_some() {
                thread::yield_now();
            }
        }
        if piece.is_last {
            _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
    // The other way may go on.
    _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Returns a proxy, and both ends of a connection through it.
    fn through() -> (Proxy, TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::to(listener.local_addr().unwrap());
        let client = TcpStream::connect(proxy.address()).unwrap();
        let (server, _) = listener.accept().unwrap();
        // The proxy enters the connection after the server has accepted.
        while proxy.shared.state().open.is_empty() {
            thread::yield_now();
        }
        for end in [&client, &server] {
            end.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        (proxy, client, server)
    }

    fn next<const N: usize>(from: &mut TcpStream) -> [u8; N] {
        let mut bytes = [0; N];
        from.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Reads to the end of the connection, however it ends.
    fn rest(from: &mut TcpStream) -> Vec<u8> {
        let mut bytes = Vec::new();
        let ended = from.read_to_end(&mut bytes);
        let is_time_out = |it: &std::io::Error| it.kind() == ErrorKind::WouldBlock;
        assert!(!ended.as_ref().is_err_and(is_time_out), "{ended:?}");
        bytes
    }

    #[test]
    fn bytes_pass_both_ways_in_pieces_late_and_slowly() {
        let (proxy, mut client, mut server) = through();
        for way in Way::BOTH {
            proxy.faults(
                way,
                Faults {
                    delay: Duration::from_millis(20),
                    jitter: Duration::from_millis(5),
                    rate: Some(1 << 20),
                    piece: Some(7),
                    ..Faults::default()
                },
            );
        }
        let bytes: Vec<u8> = (0..=255).cycle().take(300).collect();
        let begin = Instant::now();
        client.write_all(&bytes).unwrap();
        assert_eq!(next::<300>(&mut server)[..], bytes);
        assert!(begin.elapsed() >= Duration::from_millis(20));
        server.write_all(&bytes).unwrap();
        assert_eq!(next::<300>(&mut client)[..], bytes);
        assert_eq!(proxy.passed(), [300; 2]);
    }

    #[test]
    fn a_bit_flips_and_bytes_vanish_while_the_connection_stays() {
        let (proxy, mut client, mut server) = through();
        proxy.flip(Way::There);
        client.write_all(&[8]).unwrap();
        assert_eq!(next(&mut server), [12]);
        let vanishes = Faults {
            vanishes: true,
            ..Faults::default()
        };
        proxy.faults(Way::There, vanishes);
        client.write_all(&[1]).unwrap();
        while proxy.passed()[0] < 2 {
            thread::yield_now();
        }
        server.write_all(&[2]).unwrap();
        assert_eq!(next(&mut client), [2]);
        proxy.calm();
        client.write_all(&[3]).unwrap();
        assert_eq!(next(&mut server), [3], "the first byte has vanished");
    }

    #[test]
    fn what_is_held_comes_later() {
        let (proxy, mut client, mut server) = through();
        let holds = Faults {
            holds: true,
            ..Faults::default()
        };
        proxy.faults(Way::There, holds);
        client.write_all(&[1]).unwrap();
        server.write_all(&[2]).unwrap();
        assert_eq!(next(&mut client), [2]);
        assert_eq!(proxy.passed()[0], 0);
        proxy.calm();
        assert_eq!(next(&mut server), [1]);
    }

    #[test]
    fn connections_end_in_each_way() {
        let (proxy, mut client, mut server) = through();
        proxy.half_close(Way::There);
        assert_eq!(rest(&mut server), []);
        server.write_all(&[1]).unwrap();
        assert_eq!(next(&mut client), [1]);
        for end in [Proxy::cut, Proxy::reset] {
            let (proxy, mut client, mut server) = through();
            end(&proxy);
            assert_eq!(rest(&mut client), []);
            assert_eq!(rest(&mut server), []);
            assert_eq!(proxy.broken(), 1);
        }
        let (proxy, mut client, mut server) = through();
        proxy.cut_after(3);
        client.write_all(&[7; 100]).unwrap();
        assert_eq!(rest(&mut server), [7; 3]);
        assert_eq!(proxy.broken(), 1);
        proxy.refuse(true);
        let mut refused = TcpStream::connect(proxy.address()).unwrap();
        refused.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(rest(&mut refused), []);
    }
}
