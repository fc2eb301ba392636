//! Links: processes that end together.
//!
//! **Problem.** Either side may unlink at any time, while the other side ends. After an unlink no
//! signal counts, wherever it is. A process without links must not pay.
//!
//! **Rejected.** Terminating the peer from the end of a process: a peer that has unlinked in its
//! running step would end after it.
//!
//! **Protocol.** A table has a node for each process that has had a link or traps exits. A link is
//! a number that both nodes have for each other.
//! 1. A process gets its node first, and then an exit action. If the process takes no action,
//!    because it has ended, its node goes again, and the peers that it has got meanwhile are told.
//! 2. The end of the process, or its restart in place, takes its node out of the table, and then
//!    sends a signal with the link's number to each peer.
//! 3. The worker of the peer asks the signal before the next step. The signal counts if the node of
//!    the peer still has the link with this number. A signal that counts takes the link away, and
//!    ends the peer, or gives it a notice.
//! 4. An unlink takes the number out of both nodes. A notice that waits to be shown is withdrawn.
//!
//! **Proof sketch.** A link leaves the node of a process once, under its lock: by its signal or by
//! an unlink. So each link has a single effect, and none after the unlink.
//!
//! **Processes of other schedulers** have no node here, and each side has its own half of a link:
//! the remote passes on links, unlinks and signals, with the number (`remote.rs`). Where both sides
//! ask at the same time, the link of the lower PID, as text, counts, and the other side's is
//! unlinked.
//!
//! The table has shards, each with a lock. An operation on two nodes has both locks, and takes the
//! lock of the lower shard first. A thread holds a lock for O(log n) in the links of a process. No
//! process runs and no signal is sent under it.

mod remote;

pub use remote::RemoteLinks;

use crate::shrink::shrink;
use ganger_proc_api::{ExitCause, ExitNotice, Pid, Tag, Withdrawal};
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Address, Arrived, ExitAction, ExitSignal, Handle, SystemEvent, WeakHandle};
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicU64, Ordering};
use ganger_sync::sync::{Mutex, MutexGuard, lock};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// The shortest list of untaken notices that a sweep looks at.
const SWEEP: usize = 32;

/// The number of shards: far more than the workers that are likely to be at a shard at a time.
const SHARDS: usize = 32;

/// The links of a scheduler.
pub(crate) struct Links {
    scheduler: WeakHandle,
    shards: [CachePadded<Mutex<Shard>>; SHARDS],
    /// The number of the last link, and of the last node.
    last: AtomicU64,
}

/// A part of the table.
#[derive(Default)]
struct Shard {
    nodes: HashMap<Pid, Node>,
}

/// The shards of two processes, locked.
struct Both<'a> {
    /// The shard of the first process; perhaps also of the other.
    one: MutexGuard<'a, Shard>,
    other: Option<MutexGuard<'a, Shard>>,
    /// The index of the first.
    index: usize,
}

/// The links of a process.
struct Node {
    number: u64,
    process: Address,
    /// The tag of the notices, if it is told of signals instead of ended.
    traps: Option<Tag>,
    /// The link with each peer, also with a peer whose signal is under way.
    peers: BTreeMap<Pid, u64>,
    /// The link with the process that starts this process.
    parent: Option<(Pid, u64)>,
    /// Notices that may be unseen.
    told: HashMap<Pid, Withdrawal>,
    /// The length of `told` from which it is swept.
    sweep: usize,
}

/// A signal of an ended process, or of a process that asks for another's end.
struct Signal {
    links: Arc<Links>,
    to: Pid,
    from: Pid,
    /// The link by which the signal came.
    link: Option<u64>,
    cause: ExitCause,
}

/// The action at the end of a process with a node.
struct EndLinks {
    links: Arc<Links>,
    number: u64,
    peers: BTreeMap<Pid, u64>,
    parent: Option<(Pid, u64)>,
}

fn shard_of(pid: Pid) -> usize {
    usize::try_from(pid.id() % SHARDS as u64).unwrap_or_default()
}

impl Both<'_> {
    fn node(&mut self, pid: Pid) -> Option<&mut Node> {
        let shard = match &mut self.other {
            Some(other) if shard_of(pid) != self.index => other,
            _ => &mut self.one,
        };
        shard.nodes.get_mut(&pid)
    }

    /// Links two processes that have nodes, by a new link.
    fn tie(&mut self, one: Pid, other: Pid, link: u64) -> u64 {
        for (pid, peer) in [(one, other), (other, one)] {
            if let Some(node) = self.node(pid) {
                node.peers.insert(peer, link);
            }
        }
        link
    }

    fn link_of(&mut self, one: Pid, other: Pid) -> Option<u64> {
        self.node(one)?.peers.get(&other).copied()
    }
}

impl Shard {
    fn cut(&mut self, one: Pid, other: Pid, link: u64) {
        if let Some(node) = self.nodes.get_mut(&one)
            && node.peers.get(&other) == Some(&link)
        {
            node.peers.remove(&other);
        }
    }

    /// Takes the node with this number out.
    fn take(&mut self, process: Pid, number: u64) -> Option<Node> {
        let node = self.nodes.get(&process)?;
        if node.number != number {
            return None;
        }
        let node = self.nodes.remove(&process);
        shrink(&mut self.nodes);
        node
    }
}

/// Returns the processes linked to a process of a scheduler, in the order of their PIDs. O(links of
/// the process), under a lock. Empty for a process without links, or an unknown PID.
///
/// ```
/// use ganger_link::{LinkContext as _, links_of};
/// use ganger_proc_api::{BoxError, process_fn};
/// use ganger_sched::Scheduler;
///
/// let scheduler = Scheduler::start_default()?;
/// let lonely = scheduler.spawn(process_fn(|_, _, _| Ok(())))?;
/// assert!(links_of(&scheduler, lonely.pid()).is_empty());
/// # Ok::<(), BoxError>(())
/// ```
#[must_use]
pub fn links_of(scheduler: &Handle, process: Pid) -> Vec<Pid> {
    let links = scheduler.find_extension::<Links>();
    let mut peers = links.map_or_else(Vec::new, |it| it.peers(process.with_node(None)));
    peers.sort_unstable();
    peers
}

impl Links {
    /// Gives the links of a scheduler.
    pub(crate) fn of(scheduler: &Handle) -> Arc<Self> {
        scheduler.extension(|scheduler| Self {
            scheduler: scheduler.downgrade(),
            shards: Default::default(),
            last: AtomicU64::new(0),
        })
    }

    fn next(&self) -> u64 {
        // Ordering: Relaxed: the numbers need only be different.
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Locks the shard of a process.
    fn shard(&self, pid: Pid) -> MutexGuard<'_, Shard> {
        lock(&self.shards[shard_of(pid)])
    }

    /// Locks the shards of two processes.
    fn both(&self, one: Pid, other: Pid) -> Both<'_> {
        let (index, second) = (shard_of(one), shard_of(other));
        let mut lower = None;
        if second < index {
            lower = Some(self.shard(other));
        }
        let one = self.shard(one);
        if index < second {
            lower = Some(self.shard(other));
        }
        Both {
            one,
            other: lower,
            index,
        }
    }

    /// Ensures that the process has a node. Returns `false` when the process has ended.
    fn enter(self: &Arc<Self>, process: &Address) -> bool {
        let pid = process.pid();
        let mut table = self.shard(pid);
        let earlier = match table.nodes.get(&pid) {
            Some(node) if node.process.is_same(process) => return true,
            // The node of an earlier process with the PID, which was linked when it was closed.
            Some(node) => Some(node.number),
            None => None,
        };
        let earlier = earlier.and_then(|number| table.take(pid, number));
        let number = self.next();
        table.nodes.insert(
            pid,
            Node {
                number,
                process: process.clone(),
                traps: None,
                peers: BTreeMap::new(),
                parent: None,
                told: HashMap::new(),
                sweep: SWEEP,
            },
        );
        drop(table);
        if let Some(earlier) = earlier {
            self.signal_each(pid, earlier.peers, &ExitCause::NotFound);
        }
        let action = EndLinks {
            links: Arc::clone(self),
            number,
            peers: BTreeMap::new(),
            parent: None,
        };
        if process.add_exit_action(Box::new(action)).is_ok() {
            return true;
        }
        let node = self.shard(pid).take(pid, number);
        if let Some(node) = node {
            self.signal_each(pid, node.peers, &ExitCause::NotFound);
        }
        false
    }

    /// Links two processes, at a call by the first.
    pub(crate) fn link(self: &Arc<Self>, scheduler: &Handle, process: &Address, peer: Pid) {
        let pid = process.pid();
        if pid == peer || !self.enter(process) {
            return;
        }
        if !scheduler.is_local(peer) {
            return self.link_remote(scheduler, pid, peer);
        }
        let found = scheduler.address(peer);
        let is_there = found.is_some_and(|peer| self.enter(&peer));
        let mut nodes = self.both(pid, peer);
        if nodes.node(pid).is_none() {
            // The process has ended meanwhile: this is another thread.
            return;
        }
        let ours = nodes.link_of(pid, peer);
        if is_there && nodes.node(peer).is_some() {
            if ours.is_none() || ours != nodes.link_of(peer, pid) {
                nodes.tie(pid, peer, self.next());
            }
        } else if ours.is_none() {
            // The peer has ended: a signal reports it. Another signal may be under way.
            let link = nodes.tie(pid, peer, self.next());
            drop(nodes);
            self.signal(pid, peer, Some(link), ExitCause::NotFound);
        }
    }

    /// Links a process to the child that it is about to start. Returns `false` when the process has
    /// ended.
    pub(crate) fn link_child(self: &Arc<Self>, parent: &Address, child: &Address) -> bool {
        if !(self.enter(parent) && self.enter(child)) {
            return false;
        }
        let (parent, child) = (parent.pid(), child.pid());
        let mut nodes = self.both(parent, child);
        if nodes.node(parent).is_none() {
            // The parent has ended meanwhile: this is another thread.
            return false;
        }
        let link = nodes.link_of(parent, child);
        let link = link.unwrap_or_else(|| nodes.tie(parent, child, self.next()));
        if let Some(node) = nodes.node(child) {
            node.parent = Some((parent, link));
        }
        true
    }

    /// Removes a link: after this, no signal of the peer counts for the process, nor the other way
    /// round.
    pub(crate) fn unlink(&self, process: Pid, peer: Pid) {
        let mut nodes = self.both(process, peer);
        let Some(node) = nodes.node(process) else {
            return;
        };
        if let Some(told) = node.told.remove(&peer) {
            told.withdraw();
        }
        let Some(link) = node.peers.remove(&peer) else {
            return;
        };
        if let Some(node) = nodes.node(peer)
            && node.peers.get(&process) == Some(&link)
        {
            node.peers.remove(&process);
        }
        drop(nodes);
        self.unlink_remote(process, peer, link);
    }

    pub(crate) fn trap(self: &Arc<Self>, process: &Address, tag: Option<Tag>) {
        if self.enter(process)
            && let Some(node) = self.shard(process.pid()).nodes.get_mut(&process.pid())
        {
            node.traps = tag;
        }
    }

    /// Returns the peers of a process, in no order.
    pub(crate) fn peers(&self, process: Pid) -> Vec<Pid> {
        let table = self.shard(process);
        let node = table.nodes.get(&process);
        node.into_iter()
            .flat_map(|it| it.peers.keys().copied())
            .collect()
    }

    /// Sends a signal. Returns whether the target exists.
    pub(crate) fn signal(
        self: &Arc<Self>,
        to: Pid,
        from: Pid,
        link: Option<u64>,
        cause: ExitCause,
    ) -> bool {
        let Some(scheduler) = self.scheduler.upgrade() else {
            return false;
        };
        if !scheduler.is_local(to) {
            return remote::signal(&scheduler, (from, to), link, cause);
        }
        let signal = Signal {
            links: Arc::clone(self),
            to,
            from,
            link,
            cause,
        };
        let signal = SystemEvent::Signal(Box::new(signal));
        scheduler.send_system(to, signal).is_ok()
    }

    fn signal_each(self: &Arc<Self>, from: Pid, peers: BTreeMap<Pid, u64>, cause: &ExitCause) {
        for (peer, link) in peers {
            self.signal(peer, from, Some(link), cause.clone());
        }
    }
}

impl ExitSignal for Signal {
    fn arrive(self: Box<Self>) -> Arrived {
        let Self {
            links,
            to,
            from,
            link,
            cause,
        } = *self;
        let mut table = links.shard(to);
        let node = table.nodes.get_mut(&to);
        let traps = match (node, link) {
            (Some(node), Some(link)) if node.peers.get(&from) == Some(&link) => {
                node.peers.remove(&from);
                node.traps.map(|tag| (node, tag))
            }
            (_, Some(_)) => return Arrived::Nothing,
            (node, None) => node.and_then(|node| node.traps.map(|tag| (node, tag))),
        };
        let Some((node, tag)) = traps else {
            return match cause {
                ExitCause::Done => Arrived::Nothing,
                cause => Arrived::End(cause),
            };
        };
        let notice = ExitNotice::new(from, tag, cause);
        if link.is_none() {
            return Arrived::Notice(notice);
        }
        // Of a process that has had several links, some notices may be unseen.
        let notice = notice.withdrawn_by(node.told.entry(from).or_default());
        if node.told.len() >= node.sweep {
            node.told.retain(|_, told| told.is_shared());
            node.sweep = SWEEP.max(2 * node.told.len());
        }
        Arrived::Notice(notice)
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal")
            .field("from", &self.from)
            .field("cause", &self.cause)
            .finish_non_exhaustive()
    }
}

impl ExitAction for EndLinks {
    fn release(&mut self, process: Pid) {
        let node = self.links.shard(process).take(process, self.number);
        if let Some(node) = node {
            // Where the process is restarted in place, the next incarnation is shown none of these.
            node.told.values().for_each(Withdrawal::withdraw);
            self.peers = node.peers;
            self.parent = node.parent;
        }
    }

    fn tell(self: Box<Self>, process: Pid, cause: &ExitCause) {
        self.links.signal_each(process, self.peers, cause);
    }

    fn tell_some(
        mut self: Box<Self>,
        process: Pid,
        cause: &ExitCause,
        budget: &mut usize,
    ) -> Option<Box<dyn ExitAction>> {
        while *budget > 0 {
            let (peer, link) = self.peers.pop_first()?;
            self.links.signal(peer, process, Some(link), cause.clone());
            *budget -= 1;
        }
        Some(self)
    }

    /// Returns whether the peer watches its process. A peer that has ended as well watches nothing:
    /// of peers that fail together one is reported.
    fn is_watch(&self) -> bool {
        let is_there = |peer: &Pid| {
            self.links.is_elsewhere(*peer) || self.links.shard(*peer).nodes.contains_key(peer)
        };
        self.peers.keys().any(is_there)
    }

    /// Returns `true`: links do not outlive the failure of the process, so its peers do not,
    /// either.
    fn ends_with_incarnation(&self) -> bool {
        true
    }

    fn not_started(self: Box<Self>, process: Pid, cause: &ExitCause) {
        // The parent learns of it by the error of the start, so the signal does not count for the
        // parent.
        if let Some((parent, link)) = self.parent {
            self.links.shard(parent).cut(parent, process, link);
        }
        self.tell(process, cause);
    }
}
