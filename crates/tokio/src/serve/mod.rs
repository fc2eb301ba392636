//! A web server: a process for each connection, so that all workers serve.
//!
//! **Problem.** A server of tokio's world spawns its connections on the runtime, which has a single
//! thread here. Each server also needs the same things: a limit of connections, time-outs against
//! clients that send or read nothing, and an end that cuts no client off.
//!
//! **Parts.** `app.rs`: the services that answer requests. `listener.rs`: the listeners.
//! `connection.rs`: the life of a connection. `activity.rs`: the activity of a connection, which
//! decides its time-outs. `guarded.rs`: its bytes, with the time-out of writes and its place in the
//! limit. `limits.rs`: the limit of connections, and the time-outs. `tls.rs`: its TLS; `clear.rs`
//! replaces it if the feature is off.
//!
//! **The end.** The server's process is asked to finish: it closes the listener, and each
//! connection hears of the request by a signal of the server's process. The server has ended when
//! the places of all connections are free.

mod activity;
mod app;
mod connection;
mod guarded;
mod limits;
mod listener;
#[cfg_attr(not(feature = "tls"), path = "clear.rs")]
mod tls;

use self::activity::Activity;
use self::connection::Connection;
use self::guarded::Guarded;
use self::limits::Limits;
use self::tls::Security;
pub use app::{App, HyperApp, TowerApp};
pub use connection::Peer;
use ganger_proc_api::{BoxError, CancelSignal, Context, SubmitErrorKind};
use ganger_sched::ContextExt;
use ganger_sched::internal::here;
use ganger_task::Cx;
pub use listener::Listener;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The pauses after an error of the listener, out of descriptors for example. The first pause is
/// the shortest, and each further pause is twice as long, up to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// The most connections that wait in the system's queue, as tokio's `TcpListener::bind` sets it.
const QUEUE: usize = 1024;

/// Serves HTTP/1 and HTTP/2 on the connections of a listener: see [`Serve`]. Await the result.
///
/// The app is any service of `tower`, such as a router of axum or the routes of tonic, or a service
/// of hyper. The server clones it for each connection.
///
/// ```
/// use ganger_proc_api::BoxError;
/// use ganger_sched::Scheduler;
/// use ganger_task::Cx;
/// use ganger_tokio::{Tokio, serve};
/// use http_body_util::Full;
/// use hyper::body::{Bytes, Incoming};
/// use hyper::service::service_fn;
/// use hyper::{Request, Response};
/// use std::io::{Read, Write};
/// use std::time::Duration;
///
/// async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, BoxError> {
///     Ok(Response::new("hello".into()))
/// }
///
/// let scheduler = Scheduler::builder().driver(Tokio::new()?).start()?;
/// let (send, listens) = std::sync::mpsc::channel();
/// let server = scheduler.spawn(async move |_: Cx| {
///     let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
///     send.send(listener.local_addr()?)?;
///     serve(listener, service_fn(hello)).await?; // Until it is cancelled, or the scheduler stops.
///     Ok(())
/// })?;
/// let mut client = std::net::TcpStream::connect(listens.recv()?)?;
/// client.write_all(b"GET / HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")?;
/// let mut answer = String::new();
/// client.read_to_string(&mut answer)?;
/// assert!(answer.ends_with("\r\n\r\nhello"));
/// scheduler.stop(Duration::from_secs(5))?;
/// assert!(server.wait().is_done());
/// # Ok::<(), BoxError>(())
/// ```
pub fn serve<L: Listener, A: App<K>, K>(listener: L, app: A) -> Serve<L, A, K> {
    Serve {
        listener,
        app,
        limits: Limits::default(),
        security: Security::none(),
        kind: PhantomData,
    }
}

/// A web server, before it is awaited: see [`serve`](serve()).
///
/// A process awaits it. Each connection is a process of its own, and so is each request of HTTP/2;
/// a panic ends only its connection, or its request.
///
/// **The end.** When the awaiting process is asked to finish, by a cancellation or a stop of the
/// scheduler, the server accepts no more. Each connection ends after its present answer. A
/// connection between two requests, or without a request yet, waits 0.1 s for a request under way.
/// From the request to finish on, answers over HTTP/1 say `connection: close`. `await` is over when
/// all connections are closed. The deadline of a stop holds for the connections as well: it cuts
/// the remaining connections off.
///
/// **Time-outs** close a connection whose client sends no whole head in time, sends no request for
/// long, or does not read its answer. The server sets no limit to the time of the app.
///
/// **HTTPS** is for the feature `tls`: `Serve::tls`.
///
/// **Upgraded** connections, such as web sockets, count until their socket is closed.
#[must_use = "a server does nothing unless it is awaited"]
pub struct Serve<L, A, K> {
    listener: L,
    app: A,
    limits: Limits,
    security: Security,
    kind: PhantomData<fn(K)>,
}

impl<L, A, K> Serve<L, A, K> {
    /// Serves HTTPS: each connection uses TLS, by `rustls` with this configuration.
    ///
    /// If the configuration names no protocols (`alpn_protocols`), clients may choose HTTP/2 and
    /// HTTP/1. The handshake runs in the connection's process. The handshake is part of the time of
    /// [`header_timeout`](Self::header_timeout) for a new connection. A failed handshake ends only
    /// its connection, and is logged at `debug`.
    ///
    /// The program's own `rustls` names the cryptography: its feature `ring` needs only a C
    /// compiler.
    ///
    /// ```
    /// # use ganger_proc_api::BoxError;
    /// # use ganger_tokio::serve;
    /// # use http_body_util::Full;
    /// # use hyper::body::{Bytes, Incoming};
    /// # use hyper::service::service_fn;
    /// # use hyper::{Request, Response};
    /// # use std::path::Path;
    /// # use std::sync::Arc;
    /// # use tokio::net::TcpListener;
    /// use rustls::pki_types::pem::PemObject;
    /// use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    ///
    /// # async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, BoxError> {
    /// #     Ok(Response::new("hello".into()))
    /// # }
    /// async fn secure(chain: &Path, key: &Path) -> Result<(), BoxError> {
    ///     let chain = CertificateDer::pem_file_iter(chain)?.collect::<Result<_, _>>()?;
    ///     let key = PrivateKeyDer::from_pem_file(key)?;
    ///     let config = rustls::ServerConfig::builder()
    ///         .with_no_client_auth()
    ///         .with_single_cert(chain, key)?;
    ///     let listener = TcpListener::bind("127.0.0.1:8443").await?;
    ///     serve(listener, service_fn(hello)).tls(Arc::new(config)).await?;
    ///     Ok(())
    /// }
    /// ```
    #[cfg(feature = "tls")]
    pub fn tls(mut self, config: Arc<rustls::ServerConfig>) -> Self {
        self.security = Security::new(config);
        self
    }

    /// Limits the open connections; further connections wait in the system's queue. From 1 up.
    /// Default: 10,000. The system's limit of descriptors (`ulimit -n`) must be higher: at it, the
    /// server waits for connections to close.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.limits.connections =
            connections.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        self
    }

    /// Sets how long the head of a request may take from its first byte on, and how long a new
    /// connection may take until its first head is there. Default: 30 s.
    pub fn header_timeout(mut self, time: Duration) -> Self {
        self.limits.header = time;
        self
    }

    /// Sets how long a connection may be between two requests. Default: 75 s.
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.limits.idle = time;
        self
    }

    /// Sets how long a write may wait for a client that does not read. Default: 30 s. The server
    /// then releases the data kept for the client.
    pub fn write_timeout(mut self, time: Duration) -> Self {
        self.limits.write = time;
        self
    }
}

impl<L: Listener, A: App<K>, K: 'static> Serve<L, A, K> {
    async fn run(self) -> io::Result<()> {
        let Some(context) = here::context() else {
            let text = "a server must be awaited in a task of the scheduler";
            return Err(io::Error::other(text));
        };
        let Self {
            mut listener,
            app,
            limits,
            security,
            ..
        } = self;
        let places = Arc::new(Semaphore::new(limits.connections));
        let mut asked = context.cancel_signal();
        let mut pause = PAUSES.0;
        while let Some(place) = unless(&mut asked, Arc::clone(&places).acquire_owned()).await {
            let Ok(place) = place else { break };
            let Some(accepted) = unless(&mut asked, listener.accept()).await else {
                break;
            };
            match accepted {
                Ok((io, peer)) => {
                    pause = PAUSES.0;
                    if !start::<L, A, K>(&context, &app, limits, &security, (io, peer, place)) {
                        break;
                    }
                }
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    tracing::error!(target: "ganger::tokio", %error, "no connection is accepted");
                    if unless(&mut asked, tokio::time::sleep(pause))
                        .await
                        .is_none()
                    {
                        break;
                    }
                    pause = (2 * pause).min(PAUSES.1);
                }
            }
            if context.should_yield() {
                yield_once().await;
            }
        }
        // Earlier connections are served, up to the queue's size: a client that connects again and
        // again would otherwise keep the listener open.
        for _ in 0..QUEUE {
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                break;
            };
            let Some(Ok((io, peer))) = at_once(listener.accept()).await else {
                break;
            };
            if !start::<L, A, K>(&context, &app, limits, &security, (io, peer, place)) {
                break;
            }
        }
        drop(listener);
        // The number fits: see `max_connections`.
        let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let _all_closed = places.acquire_many(all).await;
        Ok(())
    }
}

impl<L: Listener, A: App<K>, K: 'static> IntoFuture for Serve<L, A, K> {
    type Output = io::Result<()>;
    type IntoFuture = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

    /// Returns the future that runs the server.
    ///
    /// # Errors
    /// Of the kind `Other` when it is awaited elsewhere than in a process.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// Starts the process of a connection. When a limit of the scheduler refuses the process, closes
/// the connection. Returns whether further processes can start. When a stop of the scheduler
/// refuses, no further process can start, so the caller closes the listener and accepts no client
/// only to drop it.
fn start<L: Listener, A: App<K>, K: 'static>(
    context: &Context,
    app: &A,
    limits: Limits,
    security: &Security,
    (io, peer, place): (L::Io, Option<SocketAddr>, OwnedSemaphorePermit),
) -> bool {
    let (app, security) = (app.clone(), security.clone());
    let (mut asked, token) = (context.cancel_signal(), context.cancel_token());
    let started = context.spawn(async move |cx: Cx| {
        let activity = Activity::new();
        let secured = security.accept(&cx, io, &mut asked, limits.header);
        let Some(io) = secured.await else {
            return Ok(());
        };
        let io = Guarded::new(io, limits.write, activity, place);
        let connection = Connection::new(app, peer, limits);
        connection.serve(&cx, io, (asked, token)).await;
        Ok::<_, BoxError>(())
    });
    let Err(error) = started else { return true };
    tracing::error!(target: "ganger::tokio", %error, "a connection is closed");
    !matches!(error.kind, SubmitErrorKind::Stopping)
}

/// Gives the output of the future, unless the signal comes first.
async fn unless<T>(asked: &mut CancelSignal, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if Pin::new(&mut *asked).poll(context).is_ready() {
            return Poll::Ready(None);
        }
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Returns the result of the future, if it is ready.
async fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Has other processes run first.
async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Returns whether the fault lies in the connection to be accepted: the next may be well.
fn is_of_connection(error: &io::Error) -> bool {
    let kinds = [
        io::ErrorKind::ConnectionAborted,
        io::ErrorKind::ConnectionRefused,
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::Interrupted,
    ];
    kinds.contains(&error.kind())
}

impl<L, A, K> fmt::Debug for Serve<L, A, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serve")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
