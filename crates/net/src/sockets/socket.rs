//! A socket in a network: tries its operations, lets them wait, and is closed once.

use super::gate::Permit;
use crate::error;
use crate::look::{About, SocketLook};
use crate::poller::{Direction, Interest, Lent};
use crate::reactor::{End, Look, Reactor, ScheduledIo, Waiter, WaiterSlot};
use ganger_sync::wake_all;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A socket of the system or of a simulation. Its operations never block.
pub trait IoSource: Send + Sync + 'static {
    /// Returns whether a short read or write means a drained or full socket.
    fn short_is_last(&self) -> bool {
        false
    }

    /// Returns the system's socket, if it has one.
    fn lent(&self) -> Option<Lent<'_>>;

    /// Makes the later close break the connection.
    fn abort(&self) {}

    #[doc(hidden)]
    fn about(&self) -> About;

    /// Reports the socket's events under this id from now on, if the poller does not see them.
    fn watch(&self, id: u64) {
        let _ = id;
    }
}

/// A socket in a network.
pub(crate) struct Socket<S: IoSource> {
    reactor: Arc<Reactor>,
    io: Arc<ScheduledIo>,
    /// None when the socket is closed. System calls hold the lock for reading, and none of them
    /// blocks: the close waits for the last call.
    open: RwLock<Option<Open<S>>>,
}

struct Open<S> {
    source: S,
    _permit: Option<Permit>,
}

impl<S: IoSource> Socket<S> {
    /// Takes a non-blocking socket into the network of this thread.
    pub(crate) fn new(source: S) -> io::Result<Arc<Self>> {
        Self::within(&Reactor::current()?, source, None)
    }

    /// Takes a non-blocking socket into a network. The close frees the permit.
    pub(crate) fn within(
        reactor: &Arc<Reactor>,
        source: S,
        permit: Option<Permit>,
    ) -> io::Result<Arc<Self>> {
        let open = Open {
            source,
            _permit: permit,
        };
        let socket = Arc::new(Self {
            reactor: Arc::clone(reactor),
            io: reactor.new_io(),
            open: RwLock::new(Some(open)),
        });
        let shown: Weak<Self> = Arc::downgrade(&socket);
        reactor.register(&socket.io, shown)?;
        socket.with(|source| {
            source.watch(socket.io.id());
            match source.lent() {
                Some(lent) => reactor.poller()?.add(lent, socket.io.id()),
                None => Ok(()),
            }
        })?;
        Ok(socket)
    }

    pub(crate) fn reactor(&self) -> &Arc<Reactor> {
        &self.reactor
    }

    fn open(&self) -> RwLockReadGuard<'_, Option<Open<S>>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `f`, which must not block, with the socket.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&S) -> io::Result<R>) -> io::Result<R> {
        match &*self.open() {
            Some(open) => f(&open.source),
            None => Err(error::closed()),
        }
    }

    /// Marks directions as ready, and wakes their waiters.
    pub(crate) fn wake(&self, ready: Interest) {
        self.io.wake(ready);
    }

    /// Waits for this time.
    pub(crate) async fn pause(&self, time: Duration) -> io::Result<()> {
        // A listener has no other use for this direction.
        self.set_deadline(Direction::Write, Some(time));
        let never = |_: &S| Err::<(), _>(io::ErrorKind::WouldBlock.into());
        match self.wait(Direction::Write, never).await {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(()),
            result => result,
        }
    }

    /// Tries an operation when the socket may be ready for it, until it does not block. Returns the
    /// result with the tick of the try.
    fn poll_ticked<R>(
        &self,
        direction: Direction,
        slot: WaiterSlot<'_>,
        context: &mut Context<'_>,
        mut operation: impl FnMut(&S) -> io::Result<R>,
    ) -> Poll<io::Result<(R, u64)>> {
        let arm = |wanted| {
            if !self.reactor.is_armed() {
                return Ok(());
            }
            self.with(|source| match source.lent() {
                Some(lent) => self.reactor.poller()?.arm(lent, self.io.id(), wanted),
                None => Ok(()),
            })
        };
        let operation = || self.with(&mut operation);
        (self.reactor).poll_io(&self.io, direction, slot, context, arm, operation)
    }

    /// Tries an operation when the socket may be ready for it, until it does not block.
    pub(crate) fn poll<R>(
        &self,
        direction: Direction,
        slot: WaiterSlot<'_>,
        context: &mut Context<'_>,
        operation: impl FnMut(&S) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let polled = self.poll_ticked(direction, slot, context, operation);
        polled.map_ok(|(result, _)| result)
    }

    /// Moves up to `room` bytes.
    pub(crate) fn poll_bytes(
        &self,
        direction: Direction,
        slot: WaiterSlot<'_>,
        context: &mut Context<'_>,
        room: usize,
        mut operation: impl FnMut(&S) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let mut is_last = false;
        let operation = |source: &S| -> io::Result<usize> {
            let bytes = operation(source)?;
            is_last = 0 < bytes && bytes < room && source.short_is_last();
            Ok(bytes)
        };
        let (bytes, tick) = ready!(self.poll_ticked(direction, slot, context, operation))?;
        if is_last {
            self.io.clear_short(direction, tick);
        }
        Poll::Ready(Ok(bytes))
    }

    /// Waits until an operation succeeds or fails. A dropped wait leaves nothing behind.
    pub(crate) async fn wait<R>(
        &self,
        direction: Direction,
        mut operation: impl FnMut(&S) -> io::Result<R>,
    ) -> io::Result<R> {
        let mut waiter = Waiter::new(&self.io, direction);
        poll_fn(|context| self.poll(direction, waiter.slot(), context, &mut operation)).await
    }

    /// Waits as [`wait`](Self::wait) does, in a yield.
    pub(crate) async fn wait_in_yield<R>(
        &self,
        direction: Direction,
        mut operation: impl FnMut(&S) -> io::Result<R>,
    ) -> io::Result<R> {
        let mut waiter = Waiter::new(&self.io, direction);
        poll_fn(|context| self.poll(direction, waiter.slot_in_yield(), context, &mut operation))
            .await
    }

    /// Waits as [`wait`](Self::wait) does, for up to `room` bytes.
    pub(crate) async fn wait_bytes(
        &self,
        direction: Direction,
        room: usize,
        mut operation: impl FnMut(&S) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut waiter = Waiter::new(&self.io, direction);
        poll_fn(|context| self.poll_bytes(direction, waiter.slot(), context, room, &mut operation))
            .await
    }

    pub(crate) fn set_deadline(&self, direction: Direction, within: Option<Duration>) {
        let timers = self.reactor.timers();
        self.io.set_deadline(timers, direction, within);
    }
}

impl<S: IoSource> Look for Socket<S> {
    fn look(&self) -> Option<SocketLook> {
        let about = self.open().as_ref().map(|it| it.source.about())?;
        Some(SocketLook {
            id: self.io.id(),
            kind: about.kind,
            local: about.local,
            peer: about.peer,
            waiters: self.io.waiters(),
        })
    }
}

/// Any socket that can be closed.
pub(crate) trait Close: Send + Sync {
    fn close(&self);
    fn abort(&self);
    fn is_closed(&self) -> bool;
}

impl<S: IoSource> Close for Socket<S> {
    fn close(&self) {
        let mut wakers = Vec::new();
        let reactor = &*self.reactor;
        self.io.end(reactor.timers(), End::Closed, &mut wakers);
        reactor.deregister(self.io.id());
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

impl<S: IoSource> Drop for Socket<S> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<S: IoSource> fmt::Debug for Socket<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").field("id", &self.io.id()).finish()
    }
}

/// Closes a socket from anywhere; clones are cheap. See
/// [`Stream::closer`](crate::Stream::closer).
#[derive(Clone)]
pub struct Closer(Weak<dyn Close>);

impl Closer {
    pub(crate) fn of<S: IoSource>(socket: &Arc<Socket<S>>) -> Self {
        let socket: Weak<Socket<S>> = Arc::downgrade(socket);
        Self(socket)
    }

    /// Closes the socket. All its operations, present and later, end with an error of the kind
    /// `NotConnected`. Does not wait.
    ///
    /// The peer of a connection reads the bytes written before, and then an end; or a reset, if
    /// this side has left bytes unread.
    pub fn close(&self) {
        if let Some(socket) = self.0.upgrade() {
            socket.close();
        }
    }

    /// Closes the socket, so that the peer of a TCP connection sees a reset and knows that bytes
    /// are missing. Bytes written before may be lost. Other sockets are closed as by
    /// [`close`](Self::close).
    pub fn abort(&self) {
        if let Some(socket) = self.0.upgrade() {
            socket.abort();
        }
    }

    /// Returns whether the socket is closed.
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
