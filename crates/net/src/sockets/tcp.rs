//! TCP.

use super::address::{Target, ToAddress};
use super::listener::{BACKLOG, Listener, Listening};
use super::names;
use super::options::{self, Keepalive, TcpOptions};
use super::socket::{IoSource, Socket};
use super::stream::{Stream, Transport};
use crate::look::{About, SocketKind};
use crate::poller::{Direction, Lent};
use crate::reactor::Reactor;
use crate::world::{End, SimListening};
use socket2::{Domain, Protocol, SockAddr, SockRef, Type};
use std::io::{self, IoSlice, Read, Write};
use std::net::{self, Shutdown, SocketAddr};
#[cfg(unix)]
use std::os::fd::AsFd;
#[cfg(windows)]
use std::os::windows::io::AsSocket;
use std::sync::Arc;
use std::time::Duration;

/// A TCP connection.
///
/// ```
/// # use ganger_net::Net;
/// # use ganger_sched::Scheduler;
/// use ganger_net::{TcpListener, TcpStream};
/// use ganger_task::Cx;
///
/// # let scheduler = Scheduler::builder().driver(Net::new()?).build()?;
/// # scheduler.start()?;
/// let task = scheduler.spawn(async |_: Cx| {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let client = TcpStream::connect(listener.local_addr()?).await?;
///     let (server, _) = listener.accept().await?;
///     client.write_all(b"hello").await?;
///     let mut buffer = [0; 5];
///     server.read_exact(&mut buffer).await?;
///     Ok(buffer == *b"hello")
/// })?;
/// assert_eq!(task.wait().into_result()?.as_bool(), Some(true));
/// # Ok::<(), ganger_proc_api::BoxError>(())
/// ```
pub type TcpStream = Stream<Tcp>;

/// A listener for TCP connections: see [`TcpStream`].
pub type TcpListener = Listener<TcpListening>;

/// The connection of a [`TcpStream`].
pub struct Tcp(Kind);

enum Kind {
    System(net::TcpStream),
    Simulated(End),
}

/// The listening socket of a [`TcpListener`].
pub struct TcpListening(ListenerKind, TcpOptions);

enum ListenerKind {
    System(net::TcpListener),
    Simulated(SimListening),
}

/// Calls the same method of a socket of the system or of a simulation.
macro_rules! of {
    ($kind:ident, $self:expr, $it:ident => $call:expr) => {
        match &$self.0 {
            $kind::System($it) => $call,
            $kind::Simulated($it) => $call,
        }
    };
}

#[cfg(unix)]
fn lend(socket: &impl AsFd) -> Lent<'_> {
    socket.as_fd()
}

#[cfg(windows)]
fn lend(socket: &impl AsSocket) -> Lent<'_> {
    socket.as_socket()
}

impl IoSource for Tcp {
    /// Returns false in a simulation, whose sockets may move a part although more has come.
    fn short_is_last(&self) -> bool {
        matches!(self.0, Kind::System(_))
    }

    fn lent(&self) -> Option<Lent<'_>> {
        match &self.0 {
            Kind::System(it) => Some(lend(it)),
            Kind::Simulated(_) => None,
        }
    }

    fn about(&self) -> About {
        About {
            kind: SocketKind::Tcp,
            local: text(of!(Kind, self, it => it.local_addr())),
            peer: text(of!(Kind, self, it => it.peer_addr())),
        }
    }

    fn abort(&self) {
        match &self.0 {
            Kind::System(it) => {
                // Fails if the connection is broken already.
                let _ = SockRef::from(it).set_linger(Some(Duration::ZERO));
            }
            Kind::Simulated(end) => end.abort(),
        }
    }

    fn watch(&self, id: u64) {
        if let Kind::Simulated(end) = &self.0 {
            end.watch(id);
        }
    }
}

/// Returns the text of an address, if the system knows it.
fn text(address: io::Result<SocketAddr>) -> Option<String> {
    address.ok().map(|it| it.to_string())
}

impl Transport for Tcp {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::System(it) => {
                let mut it = it;
                it.read(buffer)
            }
            Kind::Simulated(end) => end.read(buffer),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::System(it) => {
                let mut it = it;
                it.write(bytes)
            }
            Kind::Simulated(end) => end.write(bytes),
        }
    }

    fn write_vectored(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.0 {
            Kind::System(it) => {
                let mut it = it;
                it.write_vectored(bytes)
            }
            Kind::Simulated(end) => end.write_vectored(bytes),
        }
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        of!(Kind, self, it => it.shutdown(how))
    }
}

impl IoSource for TcpListening {
    fn lent(&self) -> Option<Lent<'_>> {
        match &self.0 {
            ListenerKind::System(it) => Some(lend(it)),
            ListenerKind::Simulated(_) => None,
        }
    }

    fn about(&self) -> About {
        About {
            local: match &self.0 {
                ListenerKind::System(it) => text(it.local_addr()),
                ListenerKind::Simulated(it) => Some(it.address().to_string()),
            },
            ..About::of(SocketKind::TcpListener)
        }
    }

    fn watch(&self, id: u64) {
        if let ListenerKind::Simulated(it) = &self.0 {
            it.watch(id);
        }
    }
}

impl Listening for TcpListening {
    type Transport = Tcp;
    type Address = SocketAddr;

    fn accept(&self) -> io::Result<(Tcp, SocketAddr)> {
        match &self.0 {
            ListenerKind::System(it) => {
                let (stream, address) = it.accept()?;
                stream.set_nonblocking(true)?;
                // On Linux a connection inherits all settings of its listener (tcp(7), socket(7)).
                if cfg!(not(target_os = "linux")) {
                    // The listener has taken the same settings. A connection refuses them only if
                    // it is broken, and its next operation says so.
                    let _ = self.1.set_on(&SockRef::from(&stream));
                }
                Ok((Tcp(Kind::System(stream)), address))
            }
            ListenerKind::Simulated(it) => {
                let (end, address) = it.accept()?;
                Ok((Tcp(Kind::Simulated(end)), address))
            }
        }
    }
}

impl Stream<Tcp> {
    /// Connects to an address. A text may have the name of a host: its addresses are tried in
    /// order, see [`resolve`](crate::resolve).
    ///
    /// A dropped wait gives the connection up.
    ///
    /// # Errors
    /// Errors of the system, mostly `ConnectionRefused`, of the last address; `InvalidInput` when a
    /// text is not an address; `Other` on a thread without a network.
    pub async fn connect(address: impl ToAddress) -> io::Result<Self> {
        TcpOptions::new().connect(address).await
    }

    /// Connects as [`connect`](Self::connect) does, within a time.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect), and `TimedOut`.
    pub async fn connect_within(address: impl ToAddress, time: Duration) -> io::Result<Self> {
        TcpOptions::new().connect_within(address, time).await
    }

    /// Takes a connection of the standard library into the network of this thread.
    ///
    /// # Errors
    /// Errors of the system; `Other` on a thread without a network.
    pub fn from_std(stream: net::TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Socket::new(Tcp(Kind::System(stream))).map(Self)
    }

    /// Returns the address of this side.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.with(|it| of!(Kind, it, it => it.local_addr()))
    }

    /// Returns the address of the peer.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.with(|it| of!(Kind, it, it => it.peer_addr()))
    }

    /// Sets whether small writes go out at once, and do not wait for more.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn set_nodelay(&self, is_set: bool) -> io::Result<()> {
        self.set(|it| it.set_tcp_nodelay(is_set))
    }

    /// Sets the probes of an idle connection, which break it if its peer is gone: see
    /// [`Keepalive`]. `None`, as for a new connection, is no probes. [`TcpOptions`] sets them for
    /// all connections of a listener.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn set_keepalive(&self, keepalive: Option<Keepalive>) -> io::Result<()> {
        self.set(|it| options::set_keepalive(&it, keepalive))
    }

    /// Breaks the connection if the peer has not confirmed sent bytes for this time, in whole
    /// milliseconds. `None` is the limit of the system, on Linux about 15 minutes.
    ///
    /// # Errors
    /// Errors of the system; `Unsupported` except on Linux.
    pub fn set_user_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        self.set(|it| options::set_user_timeout(&it, time))
    }

    /// Sets an option of the system's socket. A simulated connection accepts all settings and
    /// ignores them.
    fn set(&self, set: impl FnOnce(SockRef<'_>) -> io::Result<()>) -> io::Result<()> {
        self.0.with(|it| match &it.0 {
            Kind::System(it) => set(SockRef::from(it)),
            Kind::Simulated(_) => Ok(()),
        })
    }

    /// Reads as [`read`](Self::read) does, and leaves the bytes in the socket.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let peek = |it: &Tcp| of!(Kind, it, it => it.peek(buffer));
        self.0.wait(Direction::Read, peek).await
    }
}

impl TcpOptions {
    /// Listens as [`TcpListener::bind`] does, with these settings.
    ///
    /// # Errors
    /// The errors of [`TcpListener::bind`]; errors of the system for a setting; `Unsupported` for a
    /// setting that the system lacks.
    pub fn listen(&self, address: impl ToAddress) -> io::Result<TcpListener> {
        listen(address.to_address()?, *self)
    }

    /// Connects as [`TcpStream::connect`] does, with these settings.
    ///
    /// # Errors
    /// The errors of [`TcpStream::connect`]; errors of the system for a setting; `Unsupported` for
    /// a setting that the system lacks.
    pub async fn connect(&self, address: impl ToAddress) -> io::Result<TcpStream> {
        connect_to(Target::of(&address)?, *self, None).await
    }

    /// Connects as [`connect`](Self::connect) does, within a time.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect), and `TimedOut`.
    pub async fn connect_within(
        &self,
        address: impl ToAddress,
        time: Duration,
    ) -> io::Result<TcpStream> {
        connect_to(Target::of(&address)?, *self, Some(time)).await
    }
}

/// Connects to the first address of a target that accepts.
async fn connect_to(
    target: Target,
    options: TcpOptions,
    within: Option<Duration>,
) -> io::Result<TcpStream> {
    let (name, port) = match target {
        Target::Address(address) => {
            return connect(&Reactor::current()?, address, options, within).await;
        }
        Target::Name(name, port) => (name, port),
    };
    let reactor = Reactor::current()?;
    let end = within.map(|within| reactor.timers().after(within));
    let left = || {
        let left = |end: u64| Duration::from_nanos(end.saturating_sub(reactor.timers().now()));
        end.map(left)
    };
    let mut last = None;
    for address in names::addresses(name, port, within).await? {
        match connect(&reactor, address, options, left()).await {
            Err(error) => last = Some(error),
            connected => return connected,
        }
    }
    let none = || io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    Err(last.unwrap_or_else(none))
}

async fn connect(
    reactor: &Arc<Reactor>,
    address: SocketAddr,
    options: TcpOptions,
    within: Option<Duration>,
) -> io::Result<TcpStream> {
    let tcp = Tcp(match reactor.world() {
        Some(world) => Kind::Simulated(End::connect(world, address)),
        None => Kind::System(begin_connect(address, options)?),
    });
    let socket = Socket::within(reactor, tcp, None)?;
    if within.is_some() {
        socket.set_deadline(Direction::Write, within);
    }
    socket.wait(Direction::Write, connected).await?;
    socket.set_deadline(Direction::Write, None);
    Ok(Stream(socket))
}

fn begin_connect(address: SocketAddr, options: TcpOptions) -> io::Result<net::TcpStream> {
    let domain = Domain::for_address(address);
    let socket = socket2::Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    options.set_on(&SockRef::from(&socket))?;
    match socket.connect(&SockAddr::from(address)) {
        Err(error) if !is_under_way(&error) => Err(error),
        _ => Ok(socket.into()),
    }
}

fn is_under_way(error: &io::Error) -> bool {
    #[cfg(unix)]
    let is_of_unix = rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::INPROGRESS);
    #[cfg(not(unix))]
    let is_of_unix = false;
    is_of_unix || error.kind() == io::ErrorKind::WouldBlock
}

/// Fails with `WouldBlock` until the connection is established.
fn connected(tcp: &Tcp) -> io::Result<()> {
    let stream = match &tcp.0 {
        Kind::System(stream) => stream,
        Kind::Simulated(end) => return end.connected(),
    };
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => {
            Err(io::ErrorKind::WouldBlock.into())
        }
        Err(error) => Err(error),
    }
}

fn listen(address: SocketAddr, options: TcpOptions) -> io::Result<TcpListener> {
    if let Some(world) = Reactor::current()?.world() {
        let listening = ListenerKind::Simulated(SimListening::bind(world, address)?);
        return Socket::new(TcpListening(listening, options)).map(Listener);
    }
    let domain = Domain::for_address(address);
    let socket = socket2::Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    // On Windows this setting would take the address from other programs.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    options.set_on_listener(&SockRef::from(&socket), address)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(BACKLOG)?;
    take_listener(socket.into(), options)
}

fn take_listener(listener: net::TcpListener, options: TcpOptions) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    Socket::new(TcpListening(ListenerKind::System(listener), options)).map(Listener)
}

impl Listener<TcpListening> {
    /// Listens at an address; port 0 is any free port.
    ///
    /// # Errors
    /// Errors of the system, mostly `AddrInUse`; `InvalidInput` when a text is not an address;
    /// `Other` on a thread without a network.
    pub fn bind(address: impl ToAddress) -> io::Result<Self> {
        TcpOptions::new().listen(address)
    }

    /// Takes a listener of the standard library into the network of this thread.
    ///
    /// # Errors
    /// Errors of the system; `Other` on a thread without a network.
    pub fn from_std(listener: net::TcpListener) -> io::Result<Self> {
        take_listener(listener, TcpOptions::new())
    }

    /// Returns the address of the listener.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.with(|it| match &it.0 {
            ListenerKind::System(it) => it.local_addr(),
            ListenerKind::Simulated(it) => Ok(it.address()),
        })
    }
}
