//! What accepts connections.

use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

/// The listener of a server: tokio's `TcpListener`, or its `UnixListener`.
pub trait Listener: Send + 'static {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Accepts the next connection, and gives the address of its other side, if it has one.
    /// Cancel-safe. The server waits after an error.
    fn accept(&mut self)
    -> impl Future<Output = io::Result<(Self::Io, Option<SocketAddr>)>> + Send;
}

/// With keepalive, so that a connection whose other side is gone ends: the system asks after 60 s
/// without traffic, then every 15 s, four times. And with `TCP_NODELAY`.
impl Listener for TcpListener {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<(TcpStream, Option<SocketAddr>)> {
        let (stream, peer) = Self::accept(self).await?;
        // A broken connection takes no setting, and its next operation returns the error.
        let _ = stream.set_nodelay(true);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive());
        Ok((stream, Some(peer)))
    }
}

fn keepalive() -> TcpKeepalive {
    let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(60));
    #[cfg(not(any(target_os = "openbsd", target_os = "haiku", target_os = "vita")))]
    let keepalive = keepalive
        .with_interval(Duration::from_secs(15))
        .with_retries(4);
    keepalive
}

#[cfg(unix)]
impl Listener for UnixListener {
    type Io = UnixStream;

    async fn accept(&mut self) -> io::Result<(UnixStream, Option<SocketAddr>)> {
        let (stream, _) = Self::accept(self).await?;
        Ok((stream, None))
    }
}
