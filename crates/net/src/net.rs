//! The network as users see it: a driver of a scheduler.

use crate::commands::by_number;
use crate::look::SocketLook;
use crate::reactor::Reactor;
use crate::sim::SimNet;
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{CommandRegistry, Driver, Handle};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The network of a scheduler: for [`Builder::driver`](ganger_sched::Builder::driver).
///
/// A socket made by a process of the scheduler belongs to its network. Sockets may move to any
/// process and any thread; the threads of the scheduler wake their waiting operations. A network
/// serves one scheduler, whose halt ends the operations of all its sockets.
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

impl Net {
    /// A network with a poller of the system.
    ///
    /// # Errors
    /// When the system refuses a poller.
    pub fn new() -> io::Result<Self> {
        Reactor::new().map(Self)
    }

    /// As [`new`](Self::new), with the poller for other systems than Linux.
    #[cfg(feature = "portable")]
    #[doc(hidden)]
    pub fn portable() -> io::Result<Self> {
        Reactor::portable().map(Self)
    }

    /// Calls `f` with this network as the network of the thread: sockets made in the call belong to
    /// it. For threads outside of the scheduler.
    ///
    /// ```
    /// use ganger_net::{Net, TcpListener};
    ///
    /// let net = Net::new()?;
    /// let listener = net.enter(|| TcpListener::bind("127.0.0.1:0"))?;
    /// // Give `net` to a scheduler, and `listener` to a process of it.
    /// # drop(listener);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        self.0.enter(f)
    }

    pub(crate) fn reactor(&self) -> &Reactor {
        &self.0
    }

    /// The number of open sockets.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.0.sockets()
    }
}

/// The open sockets of a scheduler with ids above `after`, at most `most`, in the order of their
/// ids, and how many sockets are open in all. Ids rise and are never used twice, so the id of the
/// last socket is the `after` of the next page.
///
/// `None` where neither [`Net`] nor a simulated network drives the scheduler.
///
/// O(open sockets), under a lock of the network, and a system call or two for each socket of the
/// answer.
///
/// ```
/// use ganger_net::{Net, SocketKind, TcpListener, open_sockets};
/// use ganger_sched::Scheduler;
///
/// let net = Net::new()?;
/// let listener = net.enter(|| TcpListener::bind("127.0.0.1:0"))?;
/// let scheduler = Scheduler::builder().driver(net).start()?;
/// let (sockets, open) = open_sockets(&scheduler, 0, 10).unwrap();
/// assert_eq!((open, sockets[0].kind), (1, SocketKind::TcpListener));
/// assert_eq!(sockets[0].local, Some(listener.local_addr()?.to_string()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn open_sockets(
    scheduler: &Handle,
    after: u64,
    most: usize,
) -> Option<(Vec<SocketLook>, usize)> {
    match scheduler.driver::<Net>() {
        Some(net) => Some(net.reactor().look(after, most)),
        None => Some(SimNet::of(scheduler)?.reactor().look(after, most)),
    }
}

impl Driver for Net {
    fn attach(&self, commands: &CommandRegistry) {
        by_number::register_handlers(commands);
    }

    fn wait(&self, timeout: Option<Duration>) {
        self.0.wait(timeout);
    }

    fn interrupt(&self) {
        self.0.interrupt();
    }

    fn with_worker(&self, work: &mut dyn FnMut()) {
        self.0.enter(work);
    }

    fn is_awaited(&self) -> bool {
        self.0.is_awaited()
    }

    fn detach(&self) {
        self.0.halt();
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Net")
            .field("sockets", &self.sockets())
            .finish()
    }
}
