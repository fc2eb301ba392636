//! Links: processes that end together.
//!
//! **Problem.** Either side may unlink at any time, while the other one ends, and after that no
//! signal counts, wherever it is. A process without links must not pay.
//!
//! **Rejected.** To terminate the peer from the end of a process: a peer that has unlinked in its
//! running step would end after it.
//!
//! **Protocol.** One table has a node for each process that has had a link or traps exits. A link
//! is a number that both nodes have for each other.
//! 1. A process gets its node first, and then an exit action. If it takes no action any more, its
//!    node goes again, and the peers that it has got meanwhile are told.
//! 2. The end of the process takes its node out of the table, and then sends a signal with the
//!    link's number to each peer.
//! 3. The worker of the peer asks the signal before the next step. The signal counts if the node of
//!    the peer still has the link with this number. It takes the link away, and ends the peer, or
//!    tells it.
//! 4. To unlink takes the number out of both nodes. A notice that waits to be shown is withdrawn.
//!
//! **Proof sketch.** A link leaves the node of a process once, under the lock: by its signal or by
//! an unlink. So each has one effect, and none after the unlink.
//!
//! All is under one lock, which is held for O(1), and for O(n) in the links of a process that ends.
//! No process runs and no signal is sent under it.

use crate::shrink::shrink;
use ganger_proc_api::{ExitCause, ExitNotice, Pid, Tag, Withdrawal};
use ganger_sched::{Address, Arrived, ExitAction, ExitSignal, Handle, SystemEvent, WeakHandle};
use ganger_sync::sync::{Mutex, lock};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// So many notices that no step has taken are looked at together.
const SWEEP: usize = 32;

/// The links of a scheduler.
pub(crate) struct Links {
    scheduler: WeakHandle,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    nodes: HashMap<Pid, Node>,
    /// The number of the last link, and of the last node.
    last: u64,
}

/// What there is of one process.
struct Node {
    number: u64,
    process: Address,
    /// The tag of the notices, if it is told of signals instead of ended.
    traps: Option<Tag>,
    /// The link with each peer, or with one whose signal is under way.
    peers: BTreeMap<Pid, u64>,
    /// The link with the process that starts this one.
    parent: Option<(Pid, u64)>,
    /// Notices that may not have been shown.
    told: HashMap<Pid, Withdrawal>,
    /// The length of `told` from which it is swept.
    sweep: usize,
}

/// What is sent when a process has ended, or asks for the end of another one.
struct Signal {
    links: Arc<Links>,
    to: Pid,
    from: Pid,
    /// The link that it came by.
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

impl Table {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Links two processes that have nodes.
    fn tie(&mut self, one: Pid, other: Pid) -> u64 {
        let link = self.next();
        for (pid, peer) in [(one, other), (other, one)] {
            if let Some(node) = self.nodes.get_mut(&pid) {
                node.peers.insert(peer, link);
            }
        }
        link
    }

    fn link_of(&self, one: Pid, other: Pid) -> Option<u64> {
        self.nodes.get(&one)?.peers.get(&other).copied()
    }

    fn cut(&mut self, one: Pid, other: Pid, link: u64) {
        if let Some(node) = self.nodes.get_mut(&one)
            && node.peers.get(&other) == Some(&link)
        {
            node.peers.remove(&other);
        }
    }

    /// Takes the node with that number out.
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

impl Links {
    /// Those of that scheduler.
    pub(crate) fn of(scheduler: &Handle) -> Arc<Self> {
        scheduler.extension(|scheduler| Self {
            scheduler: scheduler.downgrade(),
            table: Mutex::default(),
        })
    }

    /// Sees to it that the process has a node. `false` when it has ended.
    fn enter(self: &Arc<Self>, process: &Address) -> bool {
        let pid = process.pid();
        let mut table = lock(&self.table);
        let earlier = match table.nodes.get(&pid) {
            Some(node) if node.process.is_same(process) => return true,
            // One that has had the PID before, and has been linked when it was closed.
            Some(node) => Some(node.number),
            None => None,
        };
        let earlier = earlier.and_then(|number| table.take(pid, number));
        let number = table.next();
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
        let node = lock(&self.table).take(pid, number);
        if let Some(node) = node {
            self.signal_each(pid, node.peers, &ExitCause::NotFound);
        }
        false
    }

    /// Links two processes, of which the first calls.
    pub(crate) fn link(self: &Arc<Self>, scheduler: &Handle, process: &Address, peer: Pid) {
        let pid = process.pid();
        if pid == peer || !self.enter(process) {
            return;
        }
        let found = scheduler.address(peer);
        let is_there = found.is_some_and(|peer| self.enter(&peer));
        let mut table = lock(&self.table);
        if !table.nodes.contains_key(&pid) {
            // The process has ended meanwhile: this is another thread.
            return;
        }
        let ours = table.link_of(pid, peer);
        if is_there && table.nodes.contains_key(&peer) {
            if ours.is_none() || ours != table.link_of(peer, pid) {
                table.tie(pid, peer);
            }
        } else if ours.is_none() {
            // It has ended: a signal says so. Another one may be under way.
            let link = table.tie(pid, peer);
            drop(table);
            self.signal(pid, peer, Some(link), ExitCause::NotFound);
        }
    }

    /// Links a process to the child that it is about to start. `false` when the process has ended.
    pub(crate) fn link_child(self: &Arc<Self>, parent: &Address, child: &Address) -> bool {
        if !(self.enter(parent) && self.enter(child)) {
            return false;
        }
        let (parent, child) = (parent.pid(), child.pid());
        let mut table = lock(&self.table);
        if !table.nodes.contains_key(&parent) {
            // It has ended meanwhile: this is another thread.
            return false;
        }
        let link = table.link_of(parent, child);
        let link = link.unwrap_or_else(|| table.tie(parent, child));
        if let Some(node) = table.nodes.get_mut(&child) {
            node.parent = Some((parent, link));
        }
        true
    }

    /// After this, no signal of the peer counts for the process, nor the other way round.
    pub(crate) fn unlink(&self, process: Pid, peer: Pid) {
        let mut table = lock(&self.table);
        let Some(node) = table.nodes.get_mut(&process) else {
            return;
        };
        if let Some(told) = node.told.remove(&peer) {
            told.withdraw();
        }
        if let Some(link) = node.peers.remove(&peer) {
            table.cut(peer, process, link);
        }
    }

    pub(crate) fn trap(self: &Arc<Self>, process: &Address, tag: Option<Tag>) {
        if self.enter(process)
            && let Some(node) = lock(&self.table).nodes.get_mut(&process.pid())
        {
            node.traps = tag;
        }
    }

    /// The peers of a process, in no order.
    pub(crate) fn peers(&self, process: Pid) -> Vec<Pid> {
        let table = lock(&self.table);
        let node = table.nodes.get(&process);
        node.into_iter()
            .flat_map(|it| it.peers.keys().copied())
            .collect()
    }

    /// Sends a signal. Says whether there is such a process.
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
        let mut table = lock(&links.table);
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
        // Of one that has had several links, no notice may have been shown.
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
        let node = lock(&self.links.table).take(process, self.number);
        if let Some(node) = node {
            self.peers = node.peers;
            self.parent = node.parent;
        }
    }

    fn tell(mut self: Box<Self>, process: Pid, cause: &ExitCause) {
        let peers = std::mem::take(&mut self.peers);
        self.links.signal_each(process, peers, cause);
    }

    fn not_started(mut self: Box<Self>, process: Pid) {
        // The error of its start says so to the parent.
        if let Some((parent, link)) = self.parent
            && self.peers.get(&parent) == Some(&link)
        {
            self.peers.remove(&parent);
            lock(&self.links.table).cut(parent, process, link);
        }
        self.tell(process, &ExitCause::NotFound);
    }
}
