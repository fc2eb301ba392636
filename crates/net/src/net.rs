//! The network of a scheduler: its poller, and the sockets that are in it.

use crate::by_number;
use crate::error;
use crate::poller::{Found, Poller, Sides};
use crate::ready::{End, Ready, Side};
use crate::sim::World;
use crate::timers::{Alarm, Key, Timers};
use foldhash::HashMap;
use ganger_sched::{CommandRegistry, Driver};
use ganger_sync::wake_all;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The network of a scheduler: for [`Builder::driver`](ganger_sched::Builder::driver).
///
/// The sockets that a process of that scheduler makes belong to it. They may go to any process and
/// any thread; what waits for them is woken by the threads of that scheduler. It is for one
/// scheduler, whose halt ends the operations of all of its sockets.
///
/// ```
/// use ganger_net::Net;
/// use ganger_sched::Scheduler;
///
/// let scheduler = Scheduler::builder().driver(Net::new()?).start()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Net(Arc<Reactor>);

pub(crate) struct Reactor {
    below: Below,
    sockets: Mutex<Sockets>,
}

/// What the sockets are of.
enum Below {
    System(System),
    Simulated(Arc<World>),
}

struct System {
    poller: Poller,
    begin: Instant,
    timers: Mutex<Timers>,
    /// What the next visit in the poller tells of, whatever it finds.
    later: Mutex<Vec<Found>>,
}

#[derive(Default)]
struct Sockets {
    /// By ids that are never used twice: a late event finds no other socket.
    by_id: HashMap<u64, Arc<Ready>>,
    last_id: u64,
    is_over: bool,
}

thread_local! {
    static CURRENT: RefCell<Option<Net>> = const { RefCell::new(None) };

    /// The network of which this thread tells what it has found. Null when it does not.
    static TELLING: Cell<*const Reactor> = const { Cell::new(ptr::null()) };
}

impl Net {
    /// A network, with a poller of the system.
    ///
    /// # Errors
    /// When the system refuses a poller.
    pub fn new() -> io::Result<Self> {
        Ok(Self::with(Poller::new()?))
    }

    /// As [`new`](Self::new), with the poller that is for other systems than Linux.
    #[cfg(feature = "portable")]
    #[doc(hidden)]
    pub fn portable() -> io::Result<Self> {
        Ok(Self::with(Poller::portable()?))
    }

    fn with(poller: Poller) -> Self {
        Self::of(Below::System(System {
            poller,
            begin: Instant::now(),
            timers: Mutex::default(),
            later: Mutex::default(),
        }))
    }

    pub(crate) fn simulated(world: Arc<World>) -> Self {
        Self::of(Below::Simulated(world))
    }

    fn of(below: Below) -> Self {
        let sockets = Mutex::default();
        Self(Arc::new(Reactor { below, sockets }))
    }

    /// Calls `f` with this network as that of the thread: sockets that are made meanwhile belong to
    /// it. For threads outside of the scheduler.
    ///
    /// ```
    /// use ganger_net::{Net, TcpListener};
    ///
    /// let net = Net::new()?;
    /// let listener = net.enter(|| TcpListener::bind("127.0.0.1:0"))?;
    /// // Give `net` to a scheduler, and `listener` to one of its processes.
    /// # drop(listener);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Leave(Option<Net>);
        impl Drop for Leave {
            fn drop(&mut self) {
                let net = CURRENT.replace(self.0.take());
                drop(net);
            }
        }
        let _leave = Leave(CURRENT.replace(Some(self.clone())));
        f()
    }

    /// How many sockets there are.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.0.sockets().by_id.len()
    }

    /// The network of this thread.
    pub(crate) fn current() -> io::Result<Self> {
        CURRENT.with_borrow(|net| net.clone().ok_or_else(error::no_network))
    }

    pub(crate) fn reactor(&self) -> &Reactor {
        &self.0
    }
}

impl Reactor {
    fn sockets(&self) -> MutexGuard<'_, Sockets> {
        lock(&self.sockets)
    }

    /// The poller. A simulation has none.
    pub(crate) fn poller(&self) -> io::Result<&Poller> {
        match &self.below {
            Below::System(system) => Ok(&system.poller),
            Below::Simulated(_) => Err(error::no_system()),
        }
    }

    pub(crate) fn world(&self) -> Option<&Arc<World>> {
        match &self.below {
            Below::System(_) => None,
            Below::Simulated(world) => Some(world),
        }
    }

    /// Takes a new socket in.
    pub(crate) fn enlist(&self) -> io::Result<Arc<Ready>> {
        let mut sockets = self.sockets();
        if sockets.is_over {
            return Err(error::halted());
        }
        sockets.last_id += 1;
        let id = sockets.last_id;
        let ready = Arc::new(Ready::new(id));
        sockets.by_id.insert(id, Arc::clone(&ready));
        Ok(ready)
    }

    pub(crate) fn strike(&self, id: u64) {
        let ready = self.sockets().by_id.remove(&id);
        drop(ready);
    }

    /// Nanoseconds by the clock of the network.
    pub(crate) fn now(&self) -> u64 {
        match &self.below {
            Below::System(system) => nanos(system.begin.elapsed()),
            Below::Simulated(world) => world.now(),
        }
    }

    pub(crate) fn moment_in(&self, time: Duration) -> u64 {
        self.now().saturating_add(nanos(time))
    }

    /// Has a timer run.
    pub(crate) fn arm(&self, alarm: Alarm) -> Key {
        match &self.below {
            Below::System(system) => {
                let (key, is_earlier) = lock(&system.timers).insert(alarm);
                if is_earlier {
                    system.poller.notify();
                }
                Key::Wheel(key)
            }
            Below::Simulated(world) => world.arm(alarm),
        }
    }

    pub(crate) fn disarm(&self, key: Key) {
        match (&self.below, key) {
            (Below::System(system), Key::Wheel(key)) => lock(&system.timers).cancel(key),
            (Below::Simulated(world), Key::Simulated(seat, key)) => world.disarm(seat, key),
            _ => unreachable!("a key of this network"),
        }
    }

    /// Waits in the poller, and wakes what waits for what is found there.
    fn wait(&self, system: &System, timeout: Option<Duration>) {
        let mut found = Vec::new();
        let waits = timeout != Some(Duration::ZERO);
        let timeout = if waits {
            lock(&system.timers).begin_wait(self.now(), timeout)
        } else {
            timeout
        };
        let result = system.poller.wait(timeout, &mut found);
        if waits {
            lock(&system.timers).end_wait();
        }
        self.telling(|| {
            found.append(&mut lock(&system.later));
            self.tell(found);
            self.tell_late(system);
        });
        if let Err(error) = result {
            // The scheduler reports it.
            panic!("the poller does not wait: {error}");
        }
    }

    /// That side of a socket is ready, and what waits there, with that waker, is to let others run
    /// first.
    pub(crate) fn tell_later(&self, id: u64, side: Side, waker: &Waker) {
        let Below::System(system) = &self.below else {
            return waker.wake_by_ref();
        };
        let found = Found {
            id,
            ready: Sides {
                read: side == Side::Read,
                write: side == Side::Write,
            },
            cuts_short: false,
        };
        lock(&system.later).push(found);
        system.poller.notify();
    }

    /// The thread has left the poller: until `tell` is over it needs no interrupt.
    fn telling(&self, tell: impl FnOnce()) {
        struct Leave(*const Reactor);
        impl Drop for Leave {
            fn drop(&mut self) {
                TELLING.set(self.0);
            }
        }
        let _leave = Leave(TELLING.replace(self));
        tell();
    }

    fn tell(&self, found: Vec<Found>) {
        let mut wakers = Vec::with_capacity(found.len());
        let with_ready: Vec<_> = {
            let sockets = self.sockets();
            let of = |it: Found| Some((it, Arc::clone(sockets.by_id.get(&it.id)?)));
            found.into_iter().filter_map(of).collect()
        };
        for (found, ready) in with_ready {
            ready.found(found, &mut wakers);
        }
        wake_all(wakers);
    }

    /// Ends the operations whose deadlines have passed.
    fn tell_late(&self, system: &System) {
        loop {
            let mut due = Vec::new();
            let is_more = lock(&system.timers).take_due(self.now(), &mut due);
            self.tell_due(due);
            if !is_more {
                break;
            }
        }
    }

    /// Those timers are over.
    pub(crate) fn tell_due(&self, due: Vec<Alarm>) {
        let mut wakers = Vec::new();
        for alarm in due {
            let ready = self.sockets().by_id.get(&alarm.id).cloned();
            if let Some(ready) = ready {
                ready.timer_is_over(self, alarm, &mut wakers);
            }
        }
        wake_all(wakers);
    }

    /// The scheduler has halted: no operation succeeds any more.
    pub(crate) fn detach(&self) {
        let mut sockets = self.sockets();
        sockets.is_over = true;
        let all: Vec<_> = sockets.by_id.values().cloned().collect();
        drop(sockets);
        let mut wakers = Vec::new();
        for ready in all {
            ready.end(self, End::Halted, &mut wakers);
        }
        wake_all(wakers);
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Driver for Net {
    fn attach(&self, commands: &CommandRegistry) {
        by_number::register(commands);
    }

    fn wait(&self, timeout: Option<Duration>) {
        if let Below::System(system) = &self.0.below {
            self.0.wait(system, timeout);
        }
    }

    fn interrupt(&self) {
        if ptr::eq(TELLING.get(), self.reactor()) {
            // The wait of this thread is about to end.
            return;
        }
        if let Ok(poller) = self.0.poller() {
            poller.notify();
        }
    }

    fn with_worker(&self, work: &mut dyn FnMut()) {
        self.enter(work);
    }

    fn is_awaited(&self) -> bool {
        let sockets: Vec<_> = self.0.sockets().by_id.values().cloned().collect();
        sockets.iter().any(|it| it.is_awaited())
    }

    fn detach(&self) {
        self.0.detach();
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Net")
            .field("sockets", &self.sockets())
            .finish()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    // pins: I3
    #[test]
    fn a_thread_that_has_left_the_poller_needs_no_interrupt() {
        let is_interrupted = |net: &Net| net.reactor().poller().unwrap().take_alarm();
        let [net, other] = [Net::new().unwrap(), Net::new().unwrap()];
        net.reactor().telling(|| {
            net.interrupt();
            other.interrupt();
        });
        assert!(!is_interrupted(&net) && is_interrupted(&other));
        std::thread::scope(|scope| {
            net.reactor()
                .telling(|| scope.spawn(|| net.interrupt()).join().unwrap());
        });
        assert!(is_interrupted(&net) && !is_interrupted(&net));
        net.interrupt();
        assert!(is_interrupted(&net));
    }
}
