//! The open sockets of a scheduler, and the processes that wait on them.

use super::Observer;
use ganger_net::{SocketLook, open_sockets};
use ganger_sched::Handle;
use ganger_wait::watch::Party;
use std::time::Duration;

pub use ganger_net::SocketKind;

/// A page of the open sockets of a scheduler: see [`Observer::sockets`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sockets {
    /// The sockets of the page, in the order of their ids.
    pub sockets: Vec<Socket>,
    /// How many sockets are open in all.
    pub open: usize,
}

/// An open socket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Socket {
    /// Its id in its network, from 1 up. Two sockets never have the same.
    pub id: u64,
    /// What it is.
    pub kind: SocketKind,
    /// The address of this side, if any.
    pub local: Option<String>,
    /// The address of the peer, if any.
    pub peer: Option<String>,
    /// The operations that wait until it is ready, at most 16.
    pub waits: Vec<SocketWait>,
}

/// An operation that waits until a socket is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketWait {
    /// Whether it waits for room to write; otherwise it waits for something to read, or to accept.
    pub is_write: bool,
    /// The waiting process. `None` where another waker has been left: of a command, or of a future
    /// in a set of futures.
    pub process: Option<Party>,
    /// The time since the last turn of that process began. The wait began in that turn, or before
    /// where the process waits for several things.
    pub since: Option<Duration>,
}

impl Observer {
    /// Returns the open sockets with ids above `after`, at most `most`, and the processes that wait
    /// on them. The id of the last is the `after` of the next page. `None` where `ganger-net` does
    /// not drive the scheduler.
    ///
    /// O(open sockets), under a lock of the network, and a system call or two for each socket of
    /// the page. No worker waits for longer.
    ///
    /// ```
    /// use ganger_net::{Net, TcpListener};
    /// use ganger_observe::{Observer, SocketKind};
    /// use ganger_sched::Scheduler;
    ///
    /// let net = Net::new()?;
    /// let _listener = net.enter(|| TcpListener::bind("127.0.0.1:0"))?;
    /// let scheduler = Scheduler::builder().driver(net).start()?;
    /// let page = Observer::of(&scheduler).sockets(0, 100).unwrap();
    /// assert_eq!((page.open, page.sockets[0].kind), (1, SocketKind::TcpListener));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn sockets(&self, after: u64, most: usize) -> Option<Sockets> {
        sockets(&self.handle, after, most)
    }
}

/// Returns the same as [`Observer::sockets`].
pub(crate) fn sockets(scheduler: &Handle, after: u64, most: usize) -> Option<Sockets> {
    let (page, open) = open_sockets(scheduler, after, most)?;
    let sockets = page.into_iter().map(|it| socket(scheduler, it));
    Some(Sockets {
        sockets: sockets.collect(),
        open,
    })
}

fn socket(scheduler: &Handle, look: SocketLook) -> Socket {
    let wait = |it: &ganger_net::SocketWaiter| {
        // The processes of another scheduler may wait, too.
        let own = it
            .process
            .filter(|(_, number)| *number == scheduler.number());
        let since = own.and_then(|(pid, _)| scheduler.look_at(pid, |it| it.ran_before())?);
        SocketWait {
            is_write: it.is_write,
            process: it.process.map(|(pid, number)| Party::Process(pid, number)),
            since,
        }
    };
    Socket {
        id: look.id,
        kind: look.kind,
        waits: look.waiters.iter().map(wait).collect(),
        local: look.local,
        peer: look.peer,
    }
}
