//! The life of a connection, in its process.

use super::activity::{Activity, Patience, Request as InRequest, now};
use super::app::App;
use super::guarded::Guarded;
use super::limits::Limits;
use ganger_proc_api::{BoxError, CancelSignal, CancelToken, Context};
use ganger_sched::ContextExt;
use ganger_task::Cx;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::rt::Executor;
use hyper::service::Service;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use pin_project_lite::pin_project;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{self, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};

/// When the server ends, a connection without a request waits for this long for a request under
/// way: the request is answered, and not cut off.
pub(super) const LINGER: Duration = Duration::from_millis(100);

/// The interval of pings, and the longest wait for an answer: without it, a client of HTTP/2 is
/// gone.
const PINGS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(20));

/// The address of the other side of a connection, if it has one: among the extensions of each
/// request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// A connection to be served.
pub(super) struct Connection<A, K> {
    app: A,
    peer: Option<SocketAddr>,
    limits: Limits,
    kind: PhantomData<fn(K)>,
}

/// How far the end of a connection is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serves,
    /// The connection ends, and waits for a request until then.
    Lingers(Instant),
    /// The connection ends after its present requests.
    Ends,
}

impl<A: App<K>, K: 'static> Connection<A, K> {
    pub(super) fn new(app: A, peer: Option<SocketAddr>, limits: Limits) -> Self {
        Self {
            app,
            peer,
            limits,
            kind: PhantomData,
        }
    }

    /// Serves until the client or a time-out ends the connection, or `server` or the process is
    /// asked to finish.
    pub(super) async fn serve<I>(
        self,
        cx: &Cx,
        io: Guarded<I>,
        (mut server, server_asked): (CancelSignal, CancelToken),
    ) where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (limits, activity) = (self.limits, io.activity().clone());
        let service = Watched {
            app: self.app,
            peer: self.peer,
            activity: activity.clone(),
            asked: [server_asked, cx.cancel_token()],
            kind: PhantomData,
        };
        let mut builder = Builder::new(Streams(cx.context().clone()));
        // The time-outs of this file replace hyper's.
        builder.http1().header_read_timeout(None);
        let mut http2 = builder.http2();
        http2.timer(TokioTimer::new());
        http2.keep_alive_interval(PINGS.0);
        http2.keep_alive_timeout(PINGS.1);
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(io), service);
        let mut connection = pin!(connection);
        let mut phase = Phase::Serves;
        let mut timer_at = now() + limits.header.min(Duration::from_secs(1 << 30));
        let mut timer = pin!(sleep_until(timer_at));
        let ended = poll_fn(|context| {
            loop {
                if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                    return Poll::Ready(Some(ended));
                }
                if phase == Phase::Serves
                    && (cx.is_cancelled() || Pin::new(&mut server).poll(context).is_ready())
                {
                    phase = Phase::Lingers(now() + LINGER);
                }
                let mut patience = activity.patience(&limits);
                if let Phase::Lingers(end) = phase {
                    if activity.has_requests() {
                        connection.as_mut().graceful_shutdown();
                        phase = Phase::Ends;
                        continue;
                    }
                    patience = patience.until(end);
                }
                let (Patience::Head(by) | Patience::Idle(by)) = patience else {
                    return Poll::Pending;
                };
                let present = now();
                if by > present {
                    if by < timer_at || timer.is_elapsed() {
                        timer_at = by;
                        timer.as_mut().reset(by);
                    }
                    ready!(timer.as_mut().poll(context));
                    continue;
                }
                match (phase, patience) {
                    // HTTP/2 says good-bye, and has the time of a head for it.
                    (Phase::Serves, Patience::Idle(_)) | (Phase::Lingers(_), _) => {
                        connection.as_mut().graceful_shutdown();
                        phase = Phase::Ends;
                        activity.ends();
                    }
                    _ => return Poll::Ready(None),
                }
            }
        });
        match ended.await {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::debug!(target: "ganger::tokio", %error, "a connection has ended");
            }
            None => tracing::debug!(target: "ganger::tokio", "a connection has timed out"),
        }
    }
}

/// The app, for a single connection.
struct Watched<A, K> {
    app: A,
    peer: Option<SocketAddr>,
    activity: Activity,
    /// The tokens of the server's process, and of the connection's.
    asked: [CancelToken; 2],
    kind: PhantomData<fn(K)>,
}

impl<A: App<K>, K> Service<Request<Incoming>> for Watched<A, K> {
    type Response = Response<WatchedBody<A::Body>>;
    type Error = A::Error;
    type Future = Answering<A::Answering>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let is_http2 = request.version() == Version::HTTP_2;
        // HTTP/2 says good-bye for the connection, and a tunnel is not HTTP.
        let asked = (!is_http2 && request.method() != Method::CONNECT).then(|| self.asked.clone());
        let in_request = Some(self.activity.begin(is_http2));
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(Peer(peer));
        }
        let answering = self.app.answer(request);
        Answering {
            answering,
            in_request,
            asked,
        }
    }
}

pin_project! {
    /// The answer of the app, to come.
    struct Answering<F> {
        #[pin]
        answering: F,
        in_request: Option<InRequest>,
        // Where the answer can announce the end of the connection.
        asked: Option<[CancelToken; 2]>,
    }
}

impl<F, B, E> Future for Answering<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<WatchedBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.answering.poll(context));
        let in_request = this.in_request.take();
        // Here, because a request may be answered at its first poll, before the connection's
        // process looks at the signal.
        let asked = this.asked.iter().flatten().any(CancelToken::is_cancelled);
        Poll::Ready(answer.map(|mut it| {
            if asked && it.status() != StatusCode::SWITCHING_PROTOCOLS {
                let close = HeaderValue::from_static("close");
                it.headers_mut().insert(CONNECTION, close);
            }
            it.map(|body| WatchedBody {
                body,
                _in_request: in_request,
            })
        }))
    }
}

pin_project! {
    /// The body of an answer. The request is over when it is dropped.
    struct WatchedBody<B> {
        #[pin]
        body: B,
        _in_request: Option<InRequest>,
    }
}

impl<B: Body> Body for WatchedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Starts a process for each request of HTTP/2.
#[derive(Clone)]
struct Streams(Context);

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let stream = Arc::new(Mutex::new(Some(stream)));
        let take = |stream: &Mutex<Option<F>>| {
            let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
            stream.take()
        };
        let started = {
            let stream = Arc::clone(&stream);
            self.0.spawn(async move |_: Cx| {
                if let Some(stream) = take(&stream) {
                    stream.await;
                }
                Ok::<_, BoxError>(())
            })
        };
        // The scheduler refuses, by a limit or its stop: the runtime has to run the stream.
        if started.is_err()
            && let Some(stream) = take(&stream)
        {
            tokio::spawn(stream);
        }
    }
}
