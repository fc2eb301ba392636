//! The commands by number: for processes that do everything by yields, such as interpreters.
//!
//! [`commands`](crate::commands) has the table. A network registers the handlers when a scheduler
//! gets it.

use crate::commands;
use crate::os::fs;
use crate::sockets::address::ToAddress;
use crate::sockets::names;
use crate::sockets::tcp::{TcpListener, TcpStream};
use crate::sockets::udp::UdpSocket;
#[cfg(unix)]
use crate::sockets::unix::{UnixListener, UnixStream};
use ganger_proc_api::{
    BoxError, Command, CommandError, Completer, Message, Payload, Payloads, Pid,
};
use ganger_sched::internal::here;
use ganger_sched::{Address, CommandRegistry};
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

/// Any socket as a value, for the [commands by number](crate::commands#by-number).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AnySocket {
    /// A TCP connection.
    Tcp(Arc<TcpStream>),
    /// A listener for TCP connections.
    TcpListener(Arc<TcpListener>),
    /// A UDP socket.
    Udp(Arc<UdpSocket>),
    /// A connection to a path.
    #[cfg(unix)]
    Unix(Arc<UnixStream>),
    /// A listener for connections to a path.
    #[cfg(unix)]
    UnixListener(Arc<UnixListener>),
}

/// The prefix of a path among addresses.
#[cfg(unix)]
const PATH: &str = "unix:";

/// The operation behind an answer.
type Wait = Pin<Box<dyn Future<Output = io::Result<Payload>> + Send>>;

/// The values of a command, in order.
struct Values {
    rest: <Payloads as IntoIterator>::IntoIter,
    asker: Option<Pid>,
}

impl Values {
    fn next(&mut self) -> Result<Payload, BoxError> {
        self.rest
            .next()
            .ok_or_else(|| "missing value: `ganger_net::commands` has the table of commands".into())
    }

    fn socket(&mut self) -> Result<AnySocket, BoxError> {
        Ok(self.next()?.take()?)
    }

    fn text(&mut self) -> Result<String, BoxError> {
        Ok(self.next()?.take()?)
    }

    fn bytes(&mut self) -> Result<Vec<u8>, BoxError> {
        let value = self.next()?;
        let bytes = value.as_bytes().ok_or("the value must be bytes")?;
        Ok(bytes.to_vec())
    }

    fn number(&mut self) -> Result<usize, BoxError> {
        let number = self.next()?.as_u64().ok_or("the value must be a u64")?;
        Ok(usize::try_from(number)?)
    }

    /// Returns the process behind the command.
    fn asker(&self) -> Result<Address, BoxError> {
        let found = |pid| here::scheduler()?.address(pid);
        (self.asker.and_then(found)).ok_or_else(|| "the process that asks has ended".into())
    }
}

/// Calls the same code with a connection of any kind.
macro_rules! with_stream {
    ($socket:expr, $it:ident => $result:expr) => {
        match $socket {
            AnySocket::Tcp($it) => $result,
            #[cfg(unix)]
            AnySocket::Unix($it) => $result,
            _ => return Err("expected a connection: use `net.connect` or `net.accept`".into()),
        }
    };
}

/// Calls the same code with a socket of any kind.
macro_rules! with_any {
    ($socket:expr, $it:ident => $result:expr) => {
        match $socket {
            AnySocket::Tcp($it) => $result,
            AnySocket::TcpListener($it) => $result,
            AnySocket::Udp($it) => $result,
            #[cfg(unix)]
            AnySocket::Unix($it) => $result,
            #[cfg(unix)]
            AnySocket::UnixListener($it) => $result,
        }
    };
}

fn udp(socket: AnySocket) -> Result<Arc<UdpSocket>, BoxError> {
    match socket {
        AnySocket::Udp(socket) => Ok(socket),
        _ => Err("expected a UDP socket: use `net.bind`".into()),
    }
}

fn wait(
    wait: impl Future<Output = io::Result<impl Into<Payload>>> + Send + 'static,
) -> Result<Wait, BoxError> {
    Ok(Box::pin(async { Ok(wait.await?.into()) }))
}

/// Returns an answer without a wait.
fn at_once(result: io::Result<impl Into<Payload>>) -> Result<Wait, BoxError> {
    let result = result.map(Into::into);
    Ok(Box::pin(async { result }))
}

impl From<AnySocket> for Payload {
    fn from(socket: AnySocket) -> Self {
        Self::any(socket)
    }
}

async fn connect(to: String) -> io::Result<AnySocket> {
    #[cfg(unix)]
    if let Some(path) = to.strip_prefix(PATH) {
        let stream = UnixStream::connect(path).await?;
        return Ok(AnySocket::Unix(Arc::new(stream)));
    }
    let stream = TcpStream::connect(to).await?;
    Ok(AnySocket::Tcp(Arc::new(stream)))
}

fn listen(at: &str) -> io::Result<AnySocket> {
    #[cfg(unix)]
    if let Some(path) = at.strip_prefix(PATH) {
        let listener = UnixListener::bind(path)?;
        return Ok(AnySocket::UnixListener(Arc::new(listener)));
    }
    let listener = TcpListener::bind(at)?;
    Ok(AnySocket::TcpListener(Arc::new(listener)))
}

async fn accept(listener: AnySocket) -> io::Result<AnySocket> {
    match listener {
        AnySocket::TcpListener(it) => Ok(AnySocket::Tcp(Arc::new(it.accept().await?.0))),
        #[cfg(unix)]
        AnySocket::UnixListener(it) => Ok(AnySocket::Unix(Arc::new(it.accept().await?.0))),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "expected a listener: use `net.listen`",
        )),
    }
}

async fn resolve(name: String) -> io::Result<Payload> {
    let Some((host, port)) = name.to_name() else {
        let text = format!("invalid host: `{name}`; expected `host:port`");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    };
    let addresses = names::addresses(host.to_owned(), port, None).await?;
    Ok(Payload::any(addresses))
}

fn local_address(socket: &AnySocket) -> io::Result<String> {
    let text = |address: SocketAddr| address.to_string();
    match socket {
        AnySocket::Tcp(it) => it.local_addr().map(text),
        AnySocket::TcpListener(it) => it.local_addr().map(text),
        AnySocket::Udp(it) => it.local_addr().map(text),
        #[cfg(unix)]
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a Unix socket has no IP address",
        )),
    }
}

/// The topic of the messages of `active`.
const DATA: &str = "net.data";

fn active(values: &mut Values) -> Result<Wait, BoxError> {
    let (socket, times, most) = (values.socket()?, values.number()?, values.number()?);
    let asker = values.asker()?;
    let deliver = move |bytes: Vec<u8>| {
        // Fails if the process has ended.
        let _ = asker.send(Message::new(DATA, bytes));
    };
    with_stream!(socket, it => wait(commands::deliver(it, times, most, deliver)))
}

/// Registers the handlers.
pub(crate) fn register_handlers(registry: &CommandRegistry) {
    type Begin = fn(&mut Values) -> Result<Wait, BoxError>;
    let all: [(u16, &str, Begin); 15] = [
        (30, "net.connect", |it| wait(connect(it.text()?))),
        (31, "net.listen", |it| at_once(listen(&it.text()?))),
        (32, "net.accept", |it| wait(accept(it.socket()?))),
        (33, "net.bind", |it| {
            let socket = UdpSocket::bind(it.text()?);
            at_once(socket.map(|it| AnySocket::Udp(Arc::new(it))))
        }),
        (34, "net.resolve", |it| wait(resolve(it.text()?))),
        (35, "net.local_address", |it| {
            at_once(local_address(&it.socket()?))
        }),
        (36, "net.send_to", |it| {
            let (socket, packet, to) = (udp(it.socket()?)?, it.bytes()?, it.text()?);
            wait(async move { Ok(socket.send_to(&packet, to).await? as u64) })
        }),
        (37, "net.receive_from", |it| {
            let packet = commands::packet(udp(it.socket()?)?, it.number()?);
            wait(async { Ok(Payload::any(packet.await?)) })
        }),
        (50, "net.read", |it| {
            let (socket, most) = (it.socket()?, it.number()?);
            with_stream!(socket, it => wait(async move { commands::next(&it, most).await }))
        }),
        (51, "net.write", |it| {
            let (socket, bytes) = (it.socket()?, it.bytes()?);
            with_stream!(socket, it => wait(async move { it.write_all(&bytes).await }))
        }),
        (52, "net.close", |it| {
            with_any!(it.socket()?, it => it.close());
            at_once(Ok(()))
        }),
        (53, "net.active", active),
        (
            54,
            "net.end_writes",
            |it| with_stream!(it.socket()?, it => at_once(it.shutdown(Shutdown::Write))),
        ),
        (55, "net.read_file", |it| wait(fs::read(it.text()?))),
        (56, "net.write_file", |it| {
            wait(fs::write(it.text()?, it.bytes()?))
        }),
    ];
    for (id, name, begin) in all {
        let handler = move |command: Command, completer: Completer| {
            let mut values = Values {
                rest: command.payloads.into_iter(),
                asker: completer.pid(),
            };
            let wait = begin(&mut values)?;
            let answer = async { wait.await.map_err(|it| CommandError::Failed(it.into())) };
            ganger_wait::answer(answer, completer);
            Ok(())
        };
        if let Err(error) = registry.register_any(id, name, Arc::new(handler)) {
            panic!("the ids 30 to 56 are reserved for `ganger-net`: {error}");
        }
    }
}
