//! The network of a scheduler: its poller or simulation, its sockets by their ids, and the waits of
//! their operations.

mod scheduled_io;
mod timers;

use crate::error;
use crate::look::SocketLook;
use crate::poller::{Deadline, Direction, Interest, IoEvent, Poller};
use crate::world::World;
use foldhash::HashMap;
use ganger_sync::atomic::{AtomicU64, Ordering};
use ganger_sync::sync::lock;
use ganger_sync::{scoped, wake_all};
use scheduled_io::Attempt;
pub(crate) use scheduled_io::{End, ScheduledIo, Waiter, WaiterSlot};
use std::cell::{Cell, RefCell};
use std::collections::BinaryHeap;
use std::io;
use std::ptr;

use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use timers::Timers;

pub(crate) struct Reactor {
    backend: Backend,
    timers: Timers,
    sockets: Mutex<Sockets>,
    last_id: AtomicU64,
}

/// The makers of events.
enum Backend {
    System {
        poller: Arc<Poller>,
        /// The next visit in the poller reports these events, whatever else it finds.
        deferred: Mutex<Vec<IoEvent>>,
    },
    Simulated(Arc<World>),
}

/// A socket of the network.
struct Registered {
    io: Arc<ScheduledIo>,
    /// The same, for readers.
    socket: Weak<dyn Look>,
}

/// A socket in the view of readers.
pub(crate) trait Look: Send + Sync {
    /// Describes the socket; `None` after the close.
    fn look(&self) -> Option<SocketLook>;
}

#[derive(Default)]
struct Sockets {
    /// By ids that are never used twice: a late event finds no other socket.
    by_id: HashMap<u64, Registered>,
    is_over: bool,
}

impl Sockets {
    fn all(&self) -> Vec<Arc<ScheduledIo>> {
        let all = self.by_id.values();
        all.map(|it| Arc::clone(&it.io)).collect()
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Reactor>>> = const { RefCell::new(None) };

    /// The network whose events this thread dispatches; null outside of a dispatch.
    static DISPATCHING: Cell<*const Reactor> = const { Cell::new(ptr::null()) };
}

impl Reactor {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        Ok(Self::system(Poller::new()?))
    }

    /// Creates a reactor as `new` does, with the poller for other systems than Linux.
    #[cfg(feature = "portable")]
    pub(crate) fn portable() -> io::Result<Arc<Self>> {
        Ok(Self::system(Poller::portable()?))
    }

    fn system(poller: Poller) -> Arc<Self> {
        let poller = Arc::new(poller);
        let timers = Timers::system(Arc::clone(&poller));
        let deferred = Mutex::default();
        Self::with(Backend::System { poller, deferred }, timers)
    }

    pub(crate) fn simulated(world: Arc<World>) -> Arc<Self> {
        let timers = Timers::Simulated(Arc::clone(&world));
        Self::with(Backend::Simulated(world), timers)
    }

    fn with(backend: Backend, timers: Timers) -> Arc<Self> {
        Arc::new(Self {
            backend,
            timers,
            sockets: Mutex::default(),
            last_id: AtomicU64::new(0),
        })
    }

    /// Calls `f` with this network as the network of the thread.
    pub(crate) fn enter<R>(self: &Arc<Self>, f: impl FnOnce() -> R) -> R {
        struct Leave(Option<Arc<Reactor>>);
        impl Drop for Leave {
            fn drop(&mut self) {
                let reactor = CURRENT.replace(self.0.take());
                drop(reactor);
            }
        }
        let _leave = Leave(CURRENT.replace(Some(Arc::clone(self))));
        f()
    }

    /// Returns the network of this thread.
    pub(crate) fn current() -> io::Result<Arc<Self>> {
        CURRENT.with_borrow(|reactor| reactor.clone().ok_or_else(error::no_network))
    }

    /// Returns the number of open sockets.
    pub(crate) fn sockets(&self) -> usize {
        lock(&self.sockets).by_id.len()
    }

    /// Returns the poller. A simulation has none.
    pub(crate) fn poller(&self) -> io::Result<&Poller> {
        match &self.backend {
            Backend::System { poller, .. } => Ok(poller),
            Backend::Simulated(_) => Err(error::no_system()),
        }
    }

    /// Returns whether each event needs a call of the poller.
    pub(crate) fn is_armed(&self) -> bool {
        match &self.backend {
            Backend::System { poller, .. } => poller.is_armed(),
            Backend::Simulated(_) => false,
        }
    }

    /// Returns the simulated network, in a simulation.
    pub(crate) fn world(&self) -> Option<&Arc<World>> {
        match &self.backend {
            Backend::System { .. } => None,
            Backend::Simulated(world) => Some(world),
        }
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// Creates the readiness of a new socket, with its id.
    pub(crate) fn new_io(&self) -> Arc<ScheduledIo> {
        // Ordering: Relaxed: only that no two sockets have the same id.
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::new(ScheduledIo::new(id))
    }

    /// Takes a new socket in.
    pub(crate) fn register(&self, io: &Arc<ScheduledIo>, socket: Weak<dyn Look>) -> io::Result<()> {
        let mut sockets = lock(&self.sockets);
        if sockets.is_over {
            return Err(error::halted());
        }
        let io = Arc::clone(io);
        sockets.by_id.insert(io.id(), Registered { io, socket });
        Ok(())
    }

    /// Returns the sockets with ids above `after`, at most `most`, in the order of their ids, and
    /// how many are open. O(open sockets).
    pub(crate) fn look(&self, after: u64, most: usize) -> (Vec<SocketLook>, usize) {
        let sockets = lock(&self.sockets);
        let mut lowest = BinaryHeap::new();
        for &id in sockets.by_id.keys().filter(|it| **it > after) {
            if lowest.len() < most {
                lowest.push(id);
            } else if let Some(mut highest) = lowest.peek_mut()
                && id < *highest
            {
                *highest = id;
            }
        }
        let weak = |id| sockets.by_id.get(&id).map(|it| Weak::clone(&it.socket));
        let lowest = lowest.into_sorted_vec();
        let page: Vec<_> = lowest.into_iter().filter_map(weak).collect();
        let open = sockets.by_id.len();
        drop(sockets);
        // The drop of a socket asks for the lock.
        let look = |it: Weak<dyn Look>| it.upgrade()?.look();
        (page.into_iter().filter_map(look).collect(), open)
    }

    pub(crate) fn deregister(&self, id: u64) {
        let socket = lock(&self.sockets).by_id.remove(&id);
        drop(socket);
    }

    /// Tries an operation when its direction may be ready, until it does not block. Returns the
    /// result with the tick of the try, for [`ScheduledIo::clear_short`]. `arm` asks the poller for
    /// the next event.
    pub(crate) fn poll_io<R>(
        &self,
        io: &ScheduledIo,
        direction: Direction,
        mut slot: WaiterSlot<'_>,
        context: &mut Context<'_>,
        arm: impl Fn(Interest) -> io::Result<()>,
        mut operation: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<(R, u64)>> {
        let waker = context.waker();
        loop {
            let tick = match io.attempt(&self.timers, direction, slot.reborrow(), waker, &arm)? {
                Attempt::Try(tick) => tick,
                Attempt::Wait => return Poll::Pending,
                Attempt::YieldNow => {
                    waker.wake_by_ref();
                    return Poll::Pending;
                }
                Attempt::Defer => {
                    self.defer(io.id(), direction, waker);
                    return Poll::Pending;
                }
            };
            match operation() {
                Ok(result) => return Poll::Ready(Ok((result, tick))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    io.clear(direction, tick);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Reports a direction as ready at the next visit in the poller, so that other processes run
    /// before its waiter.
    fn defer(&self, id: u64, direction: Direction, waker: &Waker) {
        match &self.backend {
            Backend::System { poller, deferred } => {
                lock(deferred).push(IoEvent::new(id, direction.into()));
                poller.notify();
            }
            Backend::Simulated(_) => waker.wake_by_ref(),
        }
    }

    /// Waits in the poller, and wakes the operations that its events concern.
    pub(crate) fn wait(&self, timeout: Option<Duration>) {
        let Backend::System { poller, deferred } = &self.backend else {
            return;
        };
        let mut events = Vec::new();
        let mut wait = |timeout| poller.wait(timeout, &mut events);
        let result = match timeout {
            Some(Duration::ZERO) => wait(timeout),
            _ => self.timers.limit_wait(timeout, wait),
        };
        self.dispatching(|| {
            events.append(&mut lock(deferred));
            self.dispatch(events);
            self.expire();
        });
        if let Err(error) = result {
            // The scheduler reports the panic.
            panic!("the poller failed: {error}");
        }
    }

    /// Ends the wait of another thread, or the next wait. The thread that dispatches events has
    /// left the poller already.
    pub(crate) fn interrupt(&self) {
        if ptr::eq(DISPATCHING.get(), self) {
            return;
        }
        if let Ok(poller) = self.poller() {
            poller.notify();
        }
    }

    /// Calls `dispatch` on the thread that has left the poller.
    fn dispatching(&self, dispatch: impl FnOnce()) {
        scoped(&DISPATCHING, self, dispatch);
    }

    /// Wakes the operations of these events.
    pub(crate) fn dispatch(&self, events: Vec<IoEvent>) {
        let mut wakers = Vec::with_capacity(events.len());
        let sockets = lock(&self.sockets);
        for event in events {
            if let Some(socket) = sockets.by_id.get(&event.id) {
                socket.io.set_ready(event, &mut wakers);
            }
        }
        drop(sockets);
        wake_all(wakers);
    }

    /// Ends the operations whose deadlines have passed.
    fn expire(&self) {
        loop {
            let mut expired = Vec::new();
            let is_more = self.timers.take_expired(&mut expired);
            self.end_late(expired);
            if !is_more {
                break;
            }
        }
    }

    /// Ends the operations of these deadlines.
    pub(crate) fn end_late(&self, expired: Vec<Deadline>) {
        let mut wakers = Vec::new();
        for deadline in expired {
            let sockets = lock(&self.sockets);
            let io = sockets.by_id.get(&deadline.id).map(|it| Arc::clone(&it.io));
            drop(sockets);
            if let Some(io) = io {
                io.deadline_passed(&self.timers, deadline, &mut wakers);
            }
        }
        wake_all(wakers);
    }

    /// Returns whether any operation waits.
    pub(crate) fn is_awaited(&self) -> bool {
        let all = lock(&self.sockets).all();
        all.iter().any(|io| io.is_awaited())
    }

    /// Ends all operations, present and later, as the scheduler has halted.
    pub(crate) fn halt(&self) {
        let mut sockets = lock(&self.sockets);
        sockets.is_over = true;
        let all = sockets.all();
        drop(sockets);
        let mut wakers = Vec::new();
        for io in all {
            io.end(&self.timers, End::Halted, &mut wakers);
        }
        wake_all(wakers);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    // pins: I3
    #[test]
    fn a_thread_that_has_left_the_poller_needs_no_interrupt() {
        let is_interrupted = |net: &Reactor| net.poller().unwrap().take_notice();
        let [net, other] = [Reactor::new().unwrap(), Reactor::new().unwrap()];
        net.dispatching(|| {
            net.interrupt();
            other.interrupt();
        });
        assert!(!is_interrupted(&net) && is_interrupted(&other));
        std::thread::scope(|scope| {
            net.dispatching(|| scope.spawn(|| net.interrupt()).join().unwrap());
        });
        assert!(is_interrupted(&net) && !is_interrupted(&net));
        net.interrupt();
        assert!(is_interrupted(&net));
    }
}
