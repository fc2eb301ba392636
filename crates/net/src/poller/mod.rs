//! Where a thread waits for the system: which sockets have become ready.
//!
//! On Linux this is epoll, edge-triggered: a socket is registered once, for both directions. On
//! other systems it is the crate `polling`, with one event for each time that a socket is armed.

use std::io;
use std::time::Duration;

#[cfg(target_os = "linux")]
mod epoll;
#[cfg(any(feature = "portable", not(target_os = "linux")))]
#[allow(unsafe_code, reason = "a socket is in the poller while it is open")]
mod portable;

/// A socket of the system, lent.
#[cfg(unix)]
pub(crate) type Lent<'a> = std::os::fd::BorrowedFd<'a>;
/// A socket of the system, lent.
#[cfg(windows)]
pub(crate) type Lent<'a> = std::os::windows::io::BorrowedSocket<'a>;

/// For each side of a socket, whether something is so.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sides {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

/// What has become of a socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) id: u64,
    pub(crate) ready: Sides,
    /// The other side sends no more, or urgent data, or the connection is broken.
    pub(crate) cuts_short: bool,
}

/// The most events that are taken at a time.
const MOST: usize = 256;

/// A poller. One thread at a time waits in it.
#[derive(Debug)]
pub(crate) enum Poller {
    #[cfg(target_os = "linux")]
    Epoll(epoll::Poller),
    #[cfg(any(feature = "portable", not(target_os = "linux")))]
    Portable(portable::Poller),
}

/// Calls a method of the poller that there is.
macro_rules! with {
    ($self:ident, $it:ident => $call:expr) => {
        match $self {
            #[cfg(target_os = "linux")]
            Self::Epoll($it) => $call,
            #[cfg(any(feature = "portable", not(target_os = "linux")))]
            Self::Portable($it) => $call,
        }
    };
}

impl Poller {
    /// The poller for this system.
    pub(crate) fn new() -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        return epoll::Poller::new().map(Self::Epoll);
        #[cfg(not(target_os = "linux"))]
        return Self::portable();
    }

    /// The poller for other systems.
    #[cfg(any(feature = "portable", not(target_os = "linux")))]
    pub(crate) fn portable() -> io::Result<Self> {
        portable::Poller::new().map(Self::Portable)
    }

    /// Watches a socket for as long as it is open.
    pub(crate) fn add(&self, socket: Lent<'_>, id: u64) -> io::Result<()> {
        with!(self, it => it.add(socket, id))
    }

    /// Those sides of a socket are waited for from now on.
    pub(crate) fn arm(&self, socket: Lent<'_>, id: u64, wanted: Sides) -> io::Result<()> {
        with!(self, it => it.arm(socket, id, wanted))
    }

    /// Watches a socket no longer.
    pub(crate) fn remove(&self, socket: Lent<'_>) {
        with!(self, it => it.remove(socket));
    }

    /// Waits until a socket is ready, for that long at the most; may return early.
    pub(crate) fn wait(&self, timeout: Option<Duration>, found: &mut Vec<Found>) -> io::Result<()> {
        with!(self, it => it.wait(timeout, found))
    }

    /// Ends the wait, or else the next one.
    pub(crate) fn notify(&self) {
        with!(self, it => it.notify());
    }

    /// Whether it has been notified since the last such look.
    #[cfg(all(test, target_os = "linux"))]
    pub(crate) fn take_alarm(&self) -> bool {
        match self {
            Self::Epoll(it) => it.take_alarm(),
            #[cfg(feature = "portable")]
            Self::Portable(_) => false,
        }
    }
}
