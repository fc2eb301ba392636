//! The network as users see it: a driver of a scheduler.

use crate::commands::by_number;
use crate::reactor::Reactor;
use ganger_sched::{CommandRegistry, Driver};
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
    /// Creates a network with a poller of the system.
    ///
    /// # Errors
    /// When the system refuses a poller.
    pub fn new() -> io::Result<Self> {
        Reactor::new().map(Self)
    }

    /// Creates a network as [`new`](Self::new) does, with the poller for other systems than Linux.
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

    /// Returns the number of open sockets.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.0.sockets()
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
