//! Settings of TCP sockets.
//!
//! Some settings must be made before a socket connects or listens. So all of them are a value that
//! makes sockets.

use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Keepalive: the system probes the peer of an idle connection, and breaks the connection if no
/// answer comes. A waiting read then ends with `TimedOut`.
///
/// Without keepalive, a connection stays open for ever if its peer has lost power or network.
///
/// By default, the system probes after 60 s without traffic, then every 15 s, four times: a dead
/// connection ends after two minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    idle: Duration,
    interval: Duration,
    tries: u32,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self::after(Duration::from_secs(60))
    }
}

impl Keepalive {
    /// Sets the time without traffic before the first probe. Systems count in whole seconds.
    #[must_use]
    pub const fn after(idle: Duration) -> Self {
        Self {
            idle,
            interval: Duration::from_secs(15),
            tries: 4,
        }
    }

    /// Sets the time between two probes.
    #[must_use]
    pub const fn every(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    /// Sets the number of probes without an answer before the connection breaks. OpenBSD and old
    /// versions of Windows use their own number.
    #[must_use]
    pub const fn tries(self, tries: u32) -> Self {
        Self { tries, ..self }
    }

    fn of_system(self) -> TcpKeepalive {
        let keepalive = TcpKeepalive::new().with_time(self.idle);
        #[cfg(not(any(target_os = "openbsd", target_os = "haiku", target_os = "vita")))]
        let keepalive = keepalive
            .with_interval(self.interval)
            .with_retries(self.tries);
        keepalive
    }
}

pub(crate) fn set_keepalive(socket: &SockRef<'_>, keepalive: Option<Keepalive>) -> io::Result<()> {
    match keepalive {
        Some(keepalive) => socket.set_tcp_keepalive(&keepalive.of_system()),
        None => socket.set_keepalive(false),
    }
}

pub(crate) fn set_user_timeout(socket: &SockRef<'_>, time: Option<Duration>) -> io::Result<()> {
    #[cfg(any(target_os = "android", target_os = "linux"))]
    return socket.set_tcp_user_timeout(time);
    #[cfg(not(any(target_os = "android", target_os = "linux")))]
    {
        let _ = (socket, time);
        let text = "TCP_USER_TIMEOUT exists on Linux only";
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }
}

/// Settings of a new [`TcpListener`](crate::TcpListener) or [`TcpStream`](crate::TcpStream). An
/// accepted connection has the settings of its listener.
///
/// A simulated socket accepts all settings and ignores them.
///
/// ```
/// # use ganger_net::Net;
/// use ganger_net::{Keepalive, TcpOptions};
///
/// let options = TcpOptions::new().keepalive(Keepalive::default()).nodelay(true);
/// # let net = Net::new()?;
/// # net.enter(|| {
/// let listener = options.listen("127.0.0.1:0")?;
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpOptions {
    keepalive: Option<Keepalive>,
    user_timeout: Option<Duration>,
    nodelay: bool,
    recv_buffer: Option<usize>,
    send_buffer: Option<usize>,
    reuse_port: bool,
    dual_stack: Option<bool>,
}

impl TcpOptions {
    /// Creates the defaults of the system.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Breaks an idle connection whose peer is gone: see [`Keepalive`].
    #[must_use]
    pub fn keepalive(self, keepalive: Keepalive) -> Self {
        let keepalive = Some(keepalive);
        Self { keepalive, ..self }
    }

    /// Breaks a connection whose peer has not confirmed sent bytes for this time
    /// (`TCP_USER_TIMEOUT`), in whole milliseconds. Linux only.
    #[must_use]
    pub fn user_timeout(self, time: Duration) -> Self {
        let user_timeout = Some(time);
        Self {
            user_timeout,
            ..self
        }
    }

    /// Sets whether small writes go out at once, and do not wait for more (`TCP_NODELAY`).
    #[must_use]
    pub fn nodelay(self, nodelay: bool) -> Self {
        Self { nodelay, ..self }
    }

    /// Sets the system's room for received bytes (`SO_RCVBUF`). Linux doubles it, and stops to
    /// adapt it to the traffic.
    #[must_use]
    pub fn recv_buffer(self, bytes: usize) -> Self {
        let recv_buffer = Some(bytes);
        Self {
            recv_buffer,
            ..self
        }
    }

    /// Sets the system's room for bytes to send (`SO_SNDBUF`). Linux doubles it, and stops to adapt
    /// it to the traffic.
    #[must_use]
    pub fn send_buffer(self, bytes: usize) -> Self {
        let send_buffer = Some(bytes);
        Self {
            send_buffer,
            ..self
        }
    }

    /// Sets whether several listeners may have the same address and port, each with this setting
    /// (`SO_REUSEPORT`): the system deals the connections out. Unix only.
    #[must_use]
    pub fn reuse_port(self, reuse_port: bool) -> Self {
        Self { reuse_port, ..self }
    }

    /// Sets whether a listener at `[::]` takes connections of IPv4 as well (`IPV6_V6ONLY`). The
    /// default depends on the system.
    #[must_use]
    pub fn dual_stack(self, dual_stack: bool) -> Self {
        let dual_stack = Some(dual_stack);
        Self { dual_stack, ..self }
    }

    /// Applies the settings of a connection.
    pub(crate) fn set_on(&self, socket: &SockRef<'_>) -> io::Result<()> {
        if self.keepalive.is_some() {
            set_keepalive(socket, self.keepalive)?;
        }
        if self.user_timeout.is_some() {
            set_user_timeout(socket, self.user_timeout)?;
        }
        if self.nodelay {
            socket.set_tcp_nodelay(true)?;
        }
        if let Some(bytes) = self.recv_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        if let Some(bytes) = self.send_buffer {
            socket.set_send_buffer_size(bytes)?;
        }
        Ok(())
    }

    /// Applies the settings of a listener and of its connections, before it has an address.
    pub(crate) fn set_on_listener(
        &self,
        socket: &SockRef<'_>,
        address: SocketAddr,
    ) -> io::Result<()> {
        if let (Some(dual_stack), SocketAddr::V6(_)) = (self.dual_stack, address) {
            socket.set_only_v6(!dual_stack)?;
        }
        if self.reuse_port {
            #[cfg(all(unix, not(any(target_os = "solaris", target_os = "illumos"))))]
            socket.set_reuse_port(true)?;
            #[cfg(not(all(unix, not(any(target_os = "solaris", target_os = "illumos")))))]
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "SO_REUSEPORT exists on Unix only",
            ));
        }
        self.set_on(socket)
    }
}
