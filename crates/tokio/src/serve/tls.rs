//! The TLS of connections, in their processes: a handshake costs the other connections nothing.
//!
//! A connection without TLS has the same type, so the code that serves it is compiled once.

use super::activity::now;
use super::connection::LINGER;
use ganger_proc_api::CancelSignal;
use ganger_task::Cx;
use rustls::ServerConfig;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::sleep_until;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The protocols of the server, the preferred protocol first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Of a server: how its connections are made secure, if they are.
#[derive(Clone)]
pub(super) struct Security(Option<TlsAcceptor>);

impl Security {
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(super) fn new(mut config: Arc<ServerConfig>) -> Self {
        if config.alpn_protocols.is_empty() {
            let own = Arc::make_mut(&mut config);
            own.alpn_protocols = PROTOCOLS.iter().map(|it| it.to_vec()).collect();
        }
        Self(Some(config.into()))
    }

    /// Secures the connection. Gives none when the client does not finish the handshake within the
    /// time, or, once the connection is asked to end, within the time for a request under way.
    pub(super) async fn accept<I: AsyncRead + AsyncWrite + Unpin>(
        &self,
        cx: &Cx,
        io: I,
        asked: &mut CancelSignal,
        time: Duration,
    ) -> Option<Stream<I>> {
        let Some(acceptor) = &self.0 else {
            return Some(Stream::Clear { io });
        };
        let begin = now();
        let far = Duration::from_secs(1 << 30);
        let mut timer = pin!(sleep_until(begin + time.min(far)));
        let mut handshake = pin!(acceptor.accept(io));
        let mut is_ending = false;
        let made = poll_fn(|context| {
            if let Poll::Ready(made) = handshake.as_mut().poll(context) {
                return Poll::Ready(made);
            }
            if !is_ending && (cx.is_cancelled() || Pin::new(&mut *asked).poll(context).is_ready()) {
                is_ending = true;
                let end = timer.deadline().min(now() + LINGER);
                timer.as_mut().reset(end);
            }
            ready!(timer.as_mut().poll(context));
            Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
        });
        match made.await {
            Ok(stream) => Some(Stream::Secure {
                stream: Box::new(stream),
            }),
            Err(error) => {
                tracing::debug!(target: "ganger::tokio", %error, "a handshake has failed");
                None
            }
        }
    }
}

/// A connection, with TLS or without.
pub(super) enum Stream<I> {
    Clear { io: I },
    Secure { stream: Box<TlsStream<I>> },
}

/// Calls a method of either.
macro_rules! either {
    ($this:expr, $method:ident($($argument:expr),*)) => {
        match &mut *$this {
            Stream::Clear { io } => Pin::new(io).$method($($argument),*),
            Stream::Secure { stream } => Pin::new(&mut **stream).$method($($argument),*),
        }
    };
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, poll_read(context, buffer))
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, poll_shutdown(context))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, poll_write_vectored(context, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Clear { io } => io.is_write_vectored(),
            Self::Secure { stream } => stream.is_write_vectored(),
        }
    }
}
