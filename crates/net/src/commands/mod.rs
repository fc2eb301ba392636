//! Sockets in state machines: commands, whose completions bring the results of the async
//! operations.
//!
//! ```
//! # use ganger_net::{Net, TcpStream, commands};
//! # use ganger_proc_api::{Actor, BoxError, Completion, Context, StepOutput, StepResult};
//! # use ganger_sched::Scheduler;
//! # use std::io;
//! # use std::net::SocketAddr;
//! # use std::sync::Arc;
//! /// Reads the first bytes of a peer.
//! struct Greeted(SocketAddr);
//!
//! const CONNECT: u64 = 1;
//! const READ: u64 = 2;
//!
//! impl Actor for Greeted {
//!     type Message = ();
//!
//!     fn receive(&mut self, _: &Context, (): (), out: &mut StepOutput) -> StepResult {
//!         out.ask(commands::connect(self.0), CONNECT);
//!         Ok(())
//!     }
//!
//!     fn completed(&mut self, _: &Context, it: Completion, out: &mut StepOutput) -> StepResult {
//!         if it.tag == CONNECT {
//!             let stream: io::Result<TcpStream> = it.take()?;
//!             out.ask(commands::read(&Arc::new(stream?), 100), READ);
//!         } else {
//!             let bytes: io::Result<Vec<u8>> = it.take()?;
//!             out.done(String::from_utf8(bytes?)?);
//!         }
//!         Ok(())
//!     }
//! }
//! # let scheduler = Scheduler::builder().driver(Net::new()?).build()?;
//! # scheduler.start()?;
//! # let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! # let greeted = scheduler.spawn(Greeted(listener.local_addr()?))?;
//! # greeted.send(())?;
//! # io::Write::write_all(&mut listener.accept()?.0, b"hello")?;
//! # assert_eq!(greeted.wait().into_result()?.as_str(), Some("hello"));
//! # Ok::<(), BoxError>(())
//! ```
//!
//! # By number
//!
//! A process that does everything by yields, such as an interpreter, asks by numbers. The only type
//! of this crate among the values is [`AnySocket`](crate::AnySocket). An address is a text:
//! `"10.0.0.1:80"`, `"example.org:80"`, or, on Unix, `"unix:/path"`.
//!
//! | id | name | values | answer |
//! |---|---|---|---|
//! | 30 | `net.connect` | address | the connection |
//! | 31 | `net.listen` | address | the listener |
//! | 32 | `net.accept` | listener | the connection |
//! | 33 | `net.bind` | address | the socket of UDP |
//! | 34 | `net.resolve` | `"host:port"` | `Vec<SocketAddr>` |
//! | 35 | `net.local_address` | socket | the address |
//! | 36 | `net.send_to` | socket of UDP, bytes, address | how many bytes, a `u64` |
//! | 37 | `net.receive_from` | socket of UDP, most bytes | `(Vec<u8>, SocketAddr)` |
//! | 50 | `net.read` | connection, most bytes | bytes; none at the end |
//! | 51 | `net.write` | connection, bytes | |
//! | 52 | `net.close` | socket | |
//! | 53 | `net.active` | connection, number of reads, most bytes of each | whether it is the end |
//! | 54 | `net.end_writes` | connection | |
//! | 55 | `net.read_file` | path | bytes |
//! | 56 | `net.write_file` | path, bytes | |
//!
//! The bytes of `net.active` come as messages of the topic `net.data`, before its answer.
//!
//! A command has moved no byte if it was revoked or its process has ended; only a [`write()`] may
//! have written a part. The deadlines and closes of the sockets hold for commands, too.

#[cfg(unix)]
use crate::os::child::Child;
use crate::os::fs;
#[cfg(unix)]
use crate::os::signal::Signal;
use crate::poller::Direction;
use crate::sockets::address::ToAddress;
use crate::sockets::listener::{Listener, Listening};
use crate::sockets::names;
use crate::sockets::stream::{Stream, Transport};
use crate::sockets::tcp::TcpStream;
use crate::sockets::udp::UdpSocket;
use ganger_wait::Until;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
#[cfg(unix)]
use std::process::ExitStatus;
use std::sync::Arc;

pub(crate) mod by_number;

/// Connects: see [`TcpStream::connect`].
pub fn connect(address: impl ToAddress + Send + 'static) -> Until<io::Result<TcpStream>> {
    Until::new(TcpStream::connect(address))
}

/// The answer of [`accept`].
pub type Accepted<L> = (
    Stream<<L as Listening>::Transport>,
    <L as Listening>::Address,
);

/// Accepts the next connection: see [`Listener::accept`].
pub fn accept<L: Listening>(listener: &Arc<Listener<L>>) -> Until<io::Result<Accepted<L>>>
where
    L::Address: Send,
{
    let listener = Arc::clone(listener);
    Until::new(async move { listener.accept().await })
}

/// Reads up to `most` bytes: see [`Stream::read`]. An empty result is the end. The buffer is
/// allocated only when bytes have come.
pub fn read<T: Transport>(stream: &Arc<Stream<T>>, most: usize) -> Until<io::Result<Vec<u8>>> {
    let stream = Arc::clone(stream);
    Until::new(async move { next(&stream, most).await })
}

/// Writes all of the bytes: see [`Stream::write_all`].
pub fn write<T: Transport>(stream: &Arc<Stream<T>>, bytes: Vec<u8>) -> Until<io::Result<()>> {
    let stream = Arc::clone(stream);
    Until::new(async move { stream.write_all(&bytes).await })
}

/// Reads a number of times, up to `most` bytes each, and gives the bytes to `deliver`, which may
/// send them to the process as a message. The completion ends the reads: `true` if the peer has
/// ended.
///
/// So the process never gets more bytes than it has asked for.
pub fn active<T: Transport>(
    stream: &Arc<Stream<T>>,
    times: usize,
    most: usize,
    deliver: impl FnMut(Vec<u8>) + Send + 'static,
) -> Until<io::Result<bool>> {
    Until::new(self::deliver(Arc::clone(stream), times, most, deliver))
}

pub(crate) async fn deliver<T: Transport>(
    stream: Arc<Stream<T>>,
    times: usize,
    most: usize,
    mut deliver: impl FnMut(Vec<u8>),
) -> io::Result<bool> {
    for _ in 0..times {
        let bytes = next(&stream, most).await?;
        if bytes.is_empty() {
            return Ok(true);
        }
        deliver(bytes);
    }
    Ok(false)
}

/// Looks up the addresses of a host: see [`resolve`](crate::resolve()).
pub fn resolve(host: impl Into<String>, port: u16) -> Until<io::Result<Vec<SocketAddr>>> {
    Until::new(names::addresses(host.into(), port, None))
}

/// Sends a packet: see [`UdpSocket::send_to`].
pub fn send_to(
    socket: &Arc<UdpSocket>,
    packet: Vec<u8>,
    address: SocketAddr,
) -> Until<io::Result<usize>> {
    let socket = Arc::clone(socket);
    Until::new(async move { socket.send_to(&packet, address).await })
}

/// Receives up to `most` bytes of the next packet, and its sender: see
/// [`UdpSocket::recv_from`].
pub fn receive_from(
    socket: &Arc<UdpSocket>,
    most: usize,
) -> Until<io::Result<(Vec<u8>, SocketAddr)>> {
    Until::new(packet(Arc::clone(socket), most))
}

pub(crate) async fn packet(
    socket: Arc<UdpSocket>,
    most: usize,
) -> io::Result<(Vec<u8>, SocketAddr)> {
    let mut packet = vec![0; most];
    let (length, from) = socket.recv_from(&mut packet).await?;
    packet.truncate(length);
    Ok((packet, from))
}

/// Reads a file: see [`fs::read`].
pub fn read_file(path: impl Into<PathBuf>) -> Until<io::Result<Vec<u8>>> {
    Until::new(fs::read(path.into()))
}

/// Writes a file: see [`fs::write`].
pub fn write_file(path: impl Into<PathBuf>, bytes: Vec<u8>) -> Until<io::Result<()>> {
    Until::new(fs::write(path.into(), bytes))
}

/// Waits for the next signal: see [`Signal::recv`].
#[cfg(unix)]
pub fn signal(signal: &Arc<Signal>) -> Until<io::Result<()>> {
    let signal = Arc::clone(signal);
    Until::new(async move { signal.recv().await })
}

/// Waits for the end of a child: see [`Child::wait`].
#[cfg(unix)]
pub fn wait(child: &Arc<Child>) -> Until<io::Result<ExitStatus>> {
    let child = Arc::clone(child);
    Until::new(async move { child.wait().await })
}

pub(crate) async fn next<T: Transport>(stream: &Stream<T>, most: usize) -> io::Result<Vec<u8>> {
    let read = |transport: &T| {
        let mut bytes = vec![0; most];
        let length = transport.read(&mut bytes)?;
        bytes.truncate(length);
        Ok(bytes)
    };
    stream.socket().wait_in_yield(Direction::Read, read).await
}
