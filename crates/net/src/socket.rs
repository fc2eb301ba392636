//! A socket in a network: tries its operations, has them wait, and is closed once.

use crate::error;
use crate::incoming::Permit;
use crate::net::Net;
use crate::poller::Sides;
use crate::ready::{End, Ready, Side, Who};
use crate::transport::Source;
use ganger_sync::wake_all;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A socket in a network.
pub(crate) struct Socket<S: Source> {
    net: Net,
    ready: Arc<Ready>,
    /// A call of the system holds the lock for reading, and none of them blocks. So the socket is
    /// closed after its last user. None when it is closed.
    open: RwLock<Option<Open<S>>>,
}

struct Open<S> {
    source: S,
    _permit: Option<Permit>,
}

impl<S: Source> Socket<S> {
    /// Takes a socket that does not block into the network of this thread.
    pub(crate) fn new(source: S) -> io::Result<Arc<Self>> {
        Self::within(&Net::current()?, source, None)
    }

    /// Takes a socket that does not block into a network. The permit is given back when it is
    /// closed.
    pub(crate) fn within(net: &Net, source: S, permit: Option<Permit>) -> io::Result<Arc<Self>> {
        let ready = net.reactor().enlist()?;
        let socket = Arc::new(Self::of(net, ready, source, permit));
        socket.with(|source| {
            source.watch(&socket.ready);
            match source.lent() {
                Some(lent) => net.reactor().poller()?.add(lent, socket.ready.id()),
                None => Ok(()),
            }
        })?;
        Ok(socket)
    }

    /// A socket that no network knows: it has no deadlines, and does not end with the halt.
    pub(crate) fn apart(net: &Net, source: S) -> Arc<Self> {
        Arc::new(Self::of(net, Arc::new(Ready::new(0)), source, None))
    }

    fn of(net: &Net, ready: Arc<Ready>, source: S, permit: Option<Permit>) -> Self {
        let open = Open {
            source,
            _permit: permit,
        };
        Self {
            net: net.clone(),
            ready,
            open: RwLock::new(Some(open)),
        }
    }

    pub(crate) fn net(&self) -> &Net {
        &self.net
    }

    fn open(&self) -> RwLockReadGuard<'_, Option<Open<S>>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `f`, which does not block, with the socket.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&S) -> io::Result<R>) -> io::Result<R> {
        match &*self.open() {
            Some(open) => f(&open.source),
            None => Err(error::closed()),
        }
    }

    /// Those sides may be ready.
    pub(crate) fn tell(&self, sides: Sides) {
        self.ready.tell(sides);
    }

    /// Waits that long.
    pub(crate) async fn pause(&self, time: Duration) -> io::Result<()> {
        // A listener has no other use for this side.
        self.set_deadline(Side::Write, Some(time));
        let never = |_: &S| Err::<(), _>(io::ErrorKind::WouldBlock.into());
        match self.wait(Side::Write, never).await {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(()),
            result => result,
        }
    }

    /// Tries an operation when the socket may be ready for it, until it does not block.
    pub(crate) fn poll<R>(
        &self,
        side: Side,
        mut who: Who<'_>,
        context: &mut Context<'_>,
        mut operation: impl FnMut(&S) -> io::Result<R>,
    ) -> Poll<io::Result<(R, u64)>> {
        let reactor = self.net.reactor();
        loop {
            let who = match &mut who {
                Who::Owner => Who::Owner,
                Who::Any(id) => Who::Any(id),
                Who::Yield(id) => Who::Yield(id),
            };
            let arm = |wanted| {
                self.with(|source| match source.lent() {
                    Some(lent) => reactor.poller()?.arm(lent, self.ready.id(), wanted),
                    None => Ok(()),
                })
            };
            let polled = self.ready.poll(reactor, side, who, context.waker(), arm);
            let tick = ready!(polled)?;
            match self.with(&mut operation) {
                Ok(result) => return Poll::Ready(Ok((result, tick))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.ready.clear(side, tick);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Moves up to `room` bytes.
    pub(crate) fn poll_bytes(
        &self,
        side: Side,
        who: Who<'_>,
        context: &mut Context<'_>,
        room: usize,
        mut operation: impl FnMut(&S) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let mut is_all = false;
        let operation = |source: &S| -> io::Result<usize> {
            let bytes = operation(source)?;
            is_all = 0 < bytes && bytes < room && source.is_short_all();
            Ok(bytes)
        };
        let (bytes, tick) = ready!(self.poll(side, who, context, operation))?;
        if is_all {
            self.ready.clear_short(side, tick);
        }
        Poll::Ready(Ok(bytes))
    }

    /// Waits until an operation succeeds, or fails. Dropping the wait leaves nothing behind.
    pub(crate) async fn wait<R>(
        &self,
        side: Side,
        mut operation: impl FnMut(&S) -> io::Result<R>,
    ) -> io::Result<R> {
        let mut place = Place::new(&self.ready, side);
        poll_fn(|context| self.poll(side, place.who(), context, &mut operation))
            .await
            .map(|(result, _)| result)
    }

    /// As [`wait`](Self::wait), in a yield.
    pub(crate) async fn wait_in_yield<R>(
        &self,
        side: Side,
        mut operation: impl FnMut(&S) -> io::Result<R>,
    ) -> io::Result<R> {
        let mut place = Place::new(&self.ready, side);
        poll_fn(|context| {
            let who = Who::Yield(&mut place.id);
            self.poll(side, who, context, &mut operation)
        })
        .await
        .map(|(result, _)| result)
    }

    /// As [`wait`](Self::wait), for up to `room` bytes.
    pub(crate) async fn wait_bytes(
        &self,
        side: Side,
        room: usize,
        mut operation: impl FnMut(&S) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut place = Place::new(&self.ready, side);
        poll_fn(|context| self.poll_bytes(side, place.who(), context, room, &mut operation)).await
    }

    pub(crate) fn set_deadline(&self, side: Side, within: Option<Duration>) {
        let mut wakers = Vec::new();
        let reactor = self.net.reactor();
        self.ready.set_deadline(reactor, side, within, &mut wakers);
        wake_all(wakers);
    }
}

/// The place of an operation among those that wait.
struct Place<'a> {
    ready: &'a Ready,
    side: Side,
    id: Option<u64>,
}

impl<'a> Place<'a> {
    fn new(ready: &'a Ready, side: Side) -> Self {
        let id = None;
        Self { ready, side, id }
    }

    fn who(&mut self) -> Who<'_> {
        Who::Any(&mut self.id)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.ready.forget(self.side, id);
        }
    }
}

/// What can be closed, whatever it is.
pub(crate) trait Close: Send + Sync {
    fn close(&self);
    fn abort(&self);
    fn is_closed(&self) -> bool;
}

impl<S: Source> Close for Socket<S> {
    fn close(&self) {
        let mut wakers = Vec::new();
        let reactor = self.net.reactor();
        self.ready.end(reactor, End::Closed, &mut wakers);
        reactor.strike(self.ready.id());
        let open = (self.open.write().unwrap_or_else(PoisonError::into_inner)).take();
        if let Some(open) = open {
            if let (Some(lent), Ok(poller)) = (open.source.lent(), reactor.poller()) {
                poller.remove(lent);
            }
            drop(open);
        }
        wake_all(wakers);
    }

    fn abort(&self) {
        if let Some(open) = &*self.open() {
            open.source.abort();
        }
        self.close();
    }

    fn is_closed(&self) -> bool {
        self.open().is_none()
    }
}

impl<S: Source> Drop for Socket<S> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<S: Source> fmt::Debug for Socket<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("id", &self.ready.id())
            .finish()
    }
}

/// Closes a socket from anywhere, in any number: see
/// [`Stream::closer`](crate::Stream::closer).
#[derive(Clone)]
pub struct Closer(Weak<dyn Close>);

impl Closer {
    pub(crate) fn of<S: Source>(socket: &Arc<Socket<S>>) -> Self {
        let socket: Weak<Socket<S>> = Arc::downgrade(socket);
        Self(socket)
    }

    /// Closes the socket. Each operation that waits there ends with an error of the kind
    /// `NotConnected`, as does each one that begins later. Does not wait.
    ///
    /// The other side of a connection reads what has been written, and then an end; or a reset,
    /// when this side has left bytes unread.
    pub fn close(&self) {
        if let Some(socket) = self.0.upgrade() {
            socket.close();
        }
    }

    /// Closes the socket, so that the other side of a TCP connection sees a reset in the place of
    /// an end: it knows that something is missing. What has been written may be lost. Other sockets
    /// are closed as by [`close`](Self::close).
    pub fn abort(&self) {
        if let Some(socket) = self.0.upgrade() {
            socket.abort();
        }
    }

    /// Whether the socket is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.upgrade().is_none_or(|socket| socket.is_closed())
    }
}

impl fmt::Debug for Closer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closer")
            .field("is_closed", &self.is_closed())
            .finish()
    }
}
