//! The open sockets of a scheduler, whatever network it has.

use crate::look::SocketLook;
use crate::net::Net;
use crate::sim::SimNet;
use ganger_sched::Handle;
use ganger_sched::internal::HandleInternals as _;

/// Returns the open sockets of a scheduler with ids above `after`, at most `most`, in the order of
/// their ids, and how many sockets are open in all. Ids rise and are never used twice, so the id of
/// the last socket is the `after` of the next page.
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
