//! Waits for the system: which sockets have become ready. The layer below all others; it knows
//! sockets by their ids.
//!
//! On Linux the poller is epoll, edge-triggered: a socket is added once, for both directions. On
//! other systems the crate `polling` gives one event each time a socket is armed.

use std::io;
use std::time::Duration;

#[cfg(target_os = "linux")]
mod epoll;
#[cfg(any(feature = "portable", not(target_os = "linux")))]
#[allow(unsafe_code, reason = "a socket is in the poller while it is open")]
mod portable;

/// A socket of the system, borrowed.
#[cfg(unix)]
pub(crate) type Lent<'a> = std::os::fd::BorrowedFd<'a>;
/// A socket of the system, borrowed.
#[cfg(windows)]
pub(crate) type Lent<'a> = std::os::windows::io::BorrowedSocket<'a>;

/// A direction of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// None, either or both of the directions of a socket.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Interest {
    pub(crate) const READ: Self = Self {
        read: true,
        write: false,
    };
    pub(crate) const WRITE: Self = Self {
        read: false,
        write: true,
    };
    pub(crate) const BOTH: Self = Self {
        read: true,
        write: true,
    };
}

impl From<Direction> for Interest {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Read => Self::READ,
            Direction::Write => Self::WRITE,
        }
    }
}

/// An event of a socket: the directions in which it may be ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IoEvent {
    pub(crate) id: u64,
    pub(crate) ready: Interest,
    /// The peer sends no more, urgent data has come, or the connection is broken. A short read
    /// then does not mean that the socket is drained.
    pub(crate) cuts_short: bool,
}

impl IoEvent {
    pub(crate) fn new(id: u64, ready: Interest) -> Self {
        Self {
            id,
            ready,
            cuts_short: false,
        }
    }
}

/// The deadline of a direction of a socket, in nanoseconds by the clock of the network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) id: u64,
    pub(crate) direction: Direction,
    pub(crate) at: u64,
}

/// The most events of a wait.
const MAX_EVENTS: usize = 256;

/// A poller. Only one thread at a time waits in it.
#[derive(Debug)]
pub(crate) enum Poller {
    #[cfg(target_os = "linux")]
    Epoll(epoll::Poller),
    #[cfg(any(feature = "portable", not(target_os = "linux")))]
    Portable(portable::Poller),
}

/// Calls a method of the present poller.
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
    /// Creates the poller for this system.
    pub(crate) fn new() -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        return epoll::Poller::new().map(Self::Epoll);
        #[cfg(not(target_os = "linux"))]
        return Self::portable();
    }

    /// Creates the poller for other systems.
    #[cfg(any(feature = "portable", not(target_os = "linux")))]
    pub(crate) fn portable() -> io::Result<Self> {
        portable::Poller::new().map(Self::Portable)
    }

    /// Watches a socket while it is open.
    pub(crate) fn add(&self, socket: Lent<'_>, id: u64) -> io::Result<()> {
        with!(self, it => it.add(socket, id))
    }

    /// Returns whether each event needs a call of [`arm`](Self::arm).
    pub(crate) fn is_armed(&self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Self::Epoll(_) => false,
            #[cfg(any(feature = "portable", not(target_os = "linux")))]
            Self::Portable(_) => true,
        }
    }

    /// Asks for the next event of a socket in these directions. Does nothing on a poller that
    /// [needs no such call](Self::is_armed).
    pub(crate) fn arm(&self, socket: Lent<'_>, id: u64, wanted: Interest) -> io::Result<()> {
        with!(self, it => it.arm(socket, id, wanted))
    }

    /// Stops watching a socket.
    pub(crate) fn remove(&self, socket: Lent<'_>) {
        with!(self, it => it.remove(socket));
    }

    /// Waits until a socket is ready, or the time is over; may return early.
    pub(crate) fn wait(
        &self,
        timeout: Option<Duration>,
        events: &mut Vec<IoEvent>,
    ) -> io::Result<()> {
        with!(self, it => it.wait(timeout, events))
    }

    /// Ends the present wait, or the next wait if no thread waits now.
    pub(crate) fn notify(&self) {
        with!(self, it => it.notify());
    }

    /// Returns whether `notify` was called since the last call of this method.
    #[cfg(all(test, target_os = "linux"))]
    pub(crate) fn take_notice(&self) -> bool {
        match self {
            Self::Epoll(it) => it.take_notice(),
            #[cfg(feature = "portable")]
            Self::Portable(_) => false,
        }
    }
}
