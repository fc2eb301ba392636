//! Processes of other nodes, and of other hosts of this node.
//!
//! **Problem.** A scheduler knows its own processes alone. Monitors, links and requests for other
//! processes travel, may be late, and are lost with their connection; the requester must learn of
//! the loss, once.
//!
//! **Rejected.** Numbers and tables of requests in the scheduler: sessions between nodes have
//! tables of their own, and two tables for one request disagree at some time.
//!
//! **Protocol.** The scheduler asks the remote where a PID is of another scheduler.
//! 1. The watcher of a process hands the remote an exit action, and the remote keeps it. The remote
//!    tells the action when the end comes, or when the connection is lost. To tell consumes the
//!    action, so a later notice finds nothing.
//! 2. A link has a number, kept by both sides. A signal and an unlink carry the number, and count
//!    where the link still has it.
//! 3. All else is a request without an answer.

use crate::process::exit_action::{ExitAction, ExitKey};
use ganger_proc_api::{CancelReason, ExitCause, NotFound, Pid};

/// Set in the number of a link requested by the other side. Each side numbers its own requests, so
/// the numbers of two sides would meet.
const BY_PEER: u64 = 1 << 63;

/// Carries monitors, links and requests to the processes of other schedulers, for crates with
/// connections to nodes. See [`Builder::remote`](crate::Builder::remote).
///
/// The scheduler calls the remote with PIDs of other schedulers, and never for its own processes. A
/// PID of the scheduler's node has no node; other PIDs have theirs. The calls must not block, hold
/// no lock of the scheduler, and may come from any thread. Calls of one thread for one process take
/// effect in their order, as far as the connection lasts.
///
/// A scheduler keeps its remote, so a remote keeps no [`Handle`](crate::Handle), but a
/// [`WeakHandle`](crate::WeakHandle).
pub trait Remote: Send + Sync + 'static {
    /// Keeps the action until the process ends, and then calls [`ExitAction::release`] and
    /// [`ExitAction::tell`], once.
    ///
    /// Without a process the cause is [`ExitCause::NotFound`]. Without a connection, also when the
    /// connection is lost later, or the remote has no room, it is [`ExitCause::NoConnection`]. Both
    /// may happen inside of this call. An action that [is over](ExitAction::is_over) may be dropped
    /// instead. An action with [`ExitAction::is_in_order`] is told behind all messages from the
    /// process to this scheduler; other actions may be told before these.
    fn add_exit_action(&self, process: Pid, action: Box<dyn ExitAction>);

    /// Drops the actions of the process with this key, and tells none of them after that.
    fn remove_exit_actions(&self, process: Pid, key: ExitKey);

    /// Passes on a cancellation: the process is asked to finish.
    ///
    /// # Errors
    /// [`NotFound`] when the PID is known to have no process, or without a connection. `Ok` says
    /// only that the request is under way; its arrival shows in a monitor.
    fn cancel(&self, process: Pid, reason: CancelReason) -> Result<(), NotFound>;

    /// Passes on a termination: the process takes no further step.
    ///
    /// # Errors
    /// As for [`cancel`](Self::cancel).
    fn terminate(&self, process: Pid) -> Result<(), NotFound>;

    /// Looks for the process of another scheduler with this name, when no process of this scheduler
    /// has the name.
    fn whereis(&self, name: &str) -> Option<Pid> {
        let _ = name;
        None
    }

    /// Passes on a link between the two processes.
    ///
    /// Without such a peer, or without a connection, also when the connection is lost later, the
    /// link's process gets a signal with the number of the link, from this side.
    fn link(&self, link: RemoteLink);

    /// Passes on the removal of the link. Harmless without such a link.
    fn unlink(&self, link: RemoteLink);

    /// Passes on the end of the link's process, for this cause. The link is over.
    fn signal(&self, link: RemoteLink, cause: ExitCause);

    /// Passes on an exit signal without a link, from the process `from` of the scheduler.
    ///
    /// # Errors
    /// As for [`cancel`](Self::cancel).
    fn exit(&self, target: Pid, from: Pid, cause: ExitCause) -> Result<(), NotFound>;
}

/// A link between processes of two schedulers, as the first side sees it.
///
/// ```
/// use ganger_sched::RemoteLink;
///
/// let link = RemoteLink::new("{a@main|1}".parse()?, "{b@main|2}".parse()?, 7);
/// let there = link.seen_by_peer();
/// assert_eq!((there.process, there.peer), (link.peer, link.process));
/// assert_ne!(there.number, 7);
/// assert_eq!(there.seen_by_peer(), link);
/// # Ok::<(), ganger_proc_api::ParsePidError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RemoteLink {
    /// The process of this side, with the node of the scheduler, if the scheduler has a node.
    pub process: Pid,
    /// The process of the other side.
    pub peer: Pid,
    /// The number of the link at this side. The other side has another number for it.
    pub number: u64,
}

impl RemoteLink {
    /// Creates the link with this number at the side of `process`.
    #[must_use]
    pub const fn new(process: Pid, peer: Pid, number: u64) -> Self {
        Self {
            process,
            peer,
            number,
        }
    }

    /// Returns the same link, as the other side sees it.
    #[must_use]
    pub const fn seen_by_peer(self) -> Self {
        Self {
            process: self.peer,
            peer: self.process,
            number: self.number ^ BY_PEER,
        }
    }

    /// Returns whether the other side has asked for the link.
    #[must_use]
    pub const fn is_by_peer(self) -> bool {
        self.number & BY_PEER != 0
    }
}
