//! hyper on the scheduler alone, without an async runtime: a [`Stream`] is a connection of hyper,
//! and [`Rt`] is its timer and executor. The feature `hyper`.
//!
//! A server, with a process for each connection:
//!
//! ```
//! # use ganger_proc_api::BoxError;
//! # use ganger_sched::{ContextExt, Scheduler};
//! # use ganger_task::Cx;
//! # use hyper::{Request, body::Incoming};
//! use ganger_net::{Net, TcpListener, TcpStream, hyper::Rt};
//! use hyper::{Error, Response, server::conn::http1, service::service_fn};
//!
//! async fn serve(cx: Cx, listener: TcpListener) -> Result<(), BoxError> {
//!     let incoming = listener.incoming(10_000);
//!     while let Ok(accepted) = cx.until_cancelled(incoming.accept()).await {
//!         let (stream, _) = accepted?;
//!         cx.spawn(async |_: Cx| {
//!             let hello = async |_| Ok::<_, Error>(Response::new("hello".to_owned()));
//!             let mut http = http1::Builder::new();
//!             http.timer(Rt::current()?).serve_connection(stream, service_fn(hello)).await?;
//!             Ok(())
//!         })?;
//!     }
//!     Ok(())
//! }
//!
//! let scheduler = Scheduler::builder().driver(Net::new()?).start()?;
//! let client = scheduler.spawn(async |cx: Cx| {
//!     let listener = TcpListener::bind("127.0.0.1:0")?;
//!     let address = listener.local_addr()?;
//!     cx.spawn(|cx: Cx| serve(cx, listener))?;
//!     let stream = TcpStream::connect(address).await?;
//!     let (mut requests, connection) = hyper::client::conn::http1::handshake(stream).await?;
//!     cx.spawn(async |_: Cx| Ok(connection.await?))?;
//!     let answer = requests.send_request(Request::new(String::new())).await?;
//!     Ok(answer.status().as_u16())
//! })?;
//! assert_eq!(client.wait().take::<u16>()?, 200);
//! # Ok::<(), BoxError>(())
//! ```

use crate::error;
use crate::poller::Direction;
use crate::reactor::WaiterSlot;
use crate::sockets::stream::{Stream, Transport};
use futures_io::AsyncWrite;
use ganger_proc_api::BoxError;
use ganger_sched::internal::here;
use ganger_sched::{ContextExt as _, Instant, Timers};
use ganger_sync::sync::lock;
use ganger_task::Cx;
use ganger_time::internal::{NotSet, OnTime, TimerKey};
use hyper::rt::{Executor, Read, ReadBufCursor, Sleep, Timer, Write};
use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use std::time::{self, Duration};

/// The most bytes of a read, which clears the room for its bytes: hyper's buffers may be larger.
const MOST_READ: usize = 64 << 10;

/// Reads of hyper, up to 64 KiB each.
impl<T: Transport> Read for Stream<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.remaining().min(MOST_READ);
        let read = |it: &T| it.read(buffer.initialize_unfilled_to(room));
        let slot = WaiterSlot::Owner;
        let polled = (self.socket()).poll_bytes(Direction::Read, slot, context, room, read);
        let bytes = ready!(polled)?;
        assert!(bytes <= room, "a read fills no more than the buffer");
        // SAFETY: the first `room` bytes are initialised, and `bytes` is no more.
        unsafe { buffer.advance(bytes) };
        Poll::Ready(Ok(()))
    }
}

/// Writes of hyper, as of `futures-io`.
impl<T: Transport> Write for Stream<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(self, context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write_vectored(self, context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(self, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_close(self, context)
    }
}

/// The timer and the executor of hyper: by the timers and processes of a scheduler. Clones are
/// cheap.
///
/// The scheduler's clock gives the times: a virtual clock in a simulation. After the halt of the
/// scheduler, a sleep ends at once.
///
/// A future for the executor runs as a child of the maker of the `Rt`. When the scheduler refuses
/// the child, by its limit or a stop, the future is dropped: HTTP/2 resets that stream.
#[derive(Clone)]
pub struct Rt {
    timers: Timers,
    /// The maker.
    parent: ganger_proc_api::Context,
    /// The same moment by both clocks.
    same: (time::Instant, Instant),
}

impl Rt {
    /// Returns the timer and the executor of the calling process, and of its scheduler.
    ///
    /// # Errors
    /// `Other` on a thread without a process.
    pub fn current() -> io::Result<Self> {
        let (scheduler, parent) = (here::scheduler(), here::context());
        let (scheduler, parent) = scheduler.zip(parent).ok_or_else(error::not_in_a_process)?;
        Ok(Self {
            timers: scheduler.timers().clone(),
            parent,
            same: (time::Instant::now(), scheduler.now()),
        })
    }
}

impl Timer for Rt {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(Sleeping::new(&self.timers, self.timers.now() + duration))
    }

    fn sleep_until(&self, deadline: time::Instant) -> Pin<Box<dyn Sleep>> {
        let at = self.same.1 + deadline.saturating_duration_since(self.same.0);
        Box::pin(Sleeping::new(&self.timers, at))
    }

    fn now(&self) -> time::Instant {
        self.same.0 + (self.timers.now() - self.same.1)
    }
}

impl<F> Executor<F> for Rt
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        let run = async |_: Cx| {
            future.await;
            Ok::<_, BoxError>(())
        };
        // The error has the future inside.
        let _ = self.parent.spawn(run);
    }
}

impl fmt::Debug for Rt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rt").field(&self.parent.pid()).finish()
    }
}

/// A sleep of hyper. Its drop takes the timer back.
struct Sleeping {
    timers: Timers,
    at: Instant,
    /// From the first poll on.
    set: Option<(Arc<Alarm>, TimerKey)>,
}

/// The timer of a sleep calls it.
struct Alarm(Mutex<State>);

enum State {
    Waits(Waker),
    Rang,
}

impl Sleeping {
    fn new(timers: &Timers, at: Instant) -> Self {
        Self {
            timers: timers.clone(),
            at,
            set: None,
        }
    }
}

impl Sleep for Sleeping {}

impl Future for Sleeping {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some((alarm, _)) = &self.set else {
            let waits = State::Waits(context.waker().clone());
            let alarm = Arc::new(Alarm(Mutex::new(waits)));
            return match self.timers.call_at(self.at, Arc::clone(&alarm) as _) {
                Ok(key) => {
                    self.set = Some((alarm, key));
                    Poll::Pending
                }
                Err(NotSet::Due | NotSet::Halted) => Poll::Ready(()),
            };
        };
        let mut state = lock(&alarm.0);
        let State::Waits(waker) = &mut *state else {
            return Poll::Ready(());
        };
        if !waker.will_wake(context.waker()) {
            let replaced = std::mem::replace(waker, context.waker().clone());
            drop(state);
            drop(replaced);
        }
        Poll::Pending
    }
}

impl Drop for Sleeping {
    fn drop(&mut self) {
        if let Some((_, key)) = self.set.take() {
            self.timers.cancel_call(key);
        }
    }
}

impl Alarm {
    fn ring(&self) {
        let before = std::mem::replace(&mut *lock(&self.0), State::Rang);
        if let State::Waits(waker) = before {
            waker.wake();
        }
    }
}

impl OnTime for Alarm {
    fn fire(self: Arc<Self>) {
        self.ring();
    }

    fn halt(self: Arc<Self>) {
        self.ring();
    }
}
