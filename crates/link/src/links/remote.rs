//! Links with processes of other schedulers.
//!
//! **Protocol.** Each side has its half of the link in its own node, under a number that says which
//! side has asked.
//! 1. The asking side notes the link, and then has it passed on. If its process has ended or
//!    unlinked meanwhile, the end or the unlink may have been passed on first: it is passed on
//!    again.
//! 2. The other side notes it, and answers with a signal if its process is gone. A link that it has
//!    asked for itself, at the same time, gives way if its own PID is the higher, as text with the
//!    node: it is unlinked, so that both sides keep the same.
//! 3. A process may be started with the link: its side notes the link before the process begins,
//!    and the asking side when the start is answered. An end that comes earlier waits for the
//!    answer.
//! 4. Signals and unlinks count where the half has their number. A signal gives the half a number
//!    of its own until the process takes it, so a link that comes after it is not mistaken for
//!    another asked for at the same time.
//!
//! **Proof sketch.** Requests of one side arrive in their order, or the connection ends, and all of
//! its links get a signal. Of two links asked for at the same time, both sides compare the same two
//! texts; the loser's side has replaced it when its unlink arrives after it, whatever else came.

use super::Links;
use ganger_proc_api::{ExitCause, NotFound, Pid};
use ganger_sched::{Handle, RemoteLink};
use std::cmp::Ordering;
use std::sync::Arc;

/// Set in the number of a half whose signal has arrived and waits for the process. Whatever links
/// the two anew replaces it, and the signal counts no more.
const SIGNALLED: u64 = 1 << 62;

/// The links that arrive from other schedulers: for crates that implement
/// [`Remote`](ganger_sched::Remote).
///
/// Links are as this side sees them: `process` is of this scheduler. A link from the other side is
/// turned by [`RemoteLink::seen_by_peer`] first. Requests of the other side must be passed in their
/// order.
pub trait RemoteLinks {
    /// Takes a link that the other side has asked for. Without such a process here, the peer gets a
    /// signal with [`ExitCause::NotFound`].
    fn link_arrived(&self, link: RemoteLink);

    /// Returns a new number for a link that is part of the start of a process at the other side.
    fn link_number(&self) -> u64;

    /// Takes the link with which the peer has been started, as a process of this side has asked.
    /// Returns `false` when that process has ended.
    fn link_begun(&self, link: RemoteLink) -> bool;

    /// Ends a link that the other side has taken away.
    fn unlink_arrived(&self, link: RemoteLink);

    /// Ends a link whose peer has ended, or whose connection is lost ([`ExitCause::NoConnection`]).
    /// Does nothing if the link is over.
    fn signal_arrived(&self, link: RemoteLink, cause: ExitCause);

    /// Passes on an exit signal that a process of the other side has sent.
    ///
    /// # Errors
    /// [`NotFound`] when no live process has the PID.
    fn exit_arrived(&self, target: Pid, from: Pid, cause: ExitCause) -> Result<(), NotFound>;
}

impl RemoteLinks for Handle {
    fn link_arrived(&self, link: RemoteLink) {
        let (pid, peer) = (self.canonical(link.process), self.canonical(link.peer));
        let links = Links::of(self);
        let process = self.address(pid).filter(|_| self.is_local(pid));
        if process.is_some_and(|it| links.enter(&it)) {
            let mut table = links.shard(pid);
            if let Some(node) = table.nodes.get_mut(&pid) {
                let ours = node.peers.get(&peer).copied();
                let ours = ours.filter(|&it| {
                    !RemoteLink::new(pid, peer, it).is_by_peer() && it & SIGNALLED == 0
                });
                if ours.is_some() && compare(self, pid, peer) == Ordering::Less {
                    // The peer gives way.
                    return;
                }
                node.peers.insert(peer, link.number);
                drop(table);
                if let Some(ours) = ours {
                    links.unlink_remote(pid, peer, ours);
                }
                return;
            }
        }
        signal(self, (pid, peer), Some(link.number), ExitCause::NotFound);
    }

    fn link_number(&self) -> u64 {
        Links::of(self).next()
    }

    fn link_begun(&self, link: RemoteLink) -> bool {
        let (pid, peer) = (self.canonical(link.process), self.canonical(link.peer));
        let links = Links::of(self);
        let process = self.address(pid).filter(|_| self.is_local(pid));
        if !process.is_some_and(|it| links.enter(&it)) {
            return false;
        }
        let mut table = links.shard(pid);
        let node = table.nodes.get_mut(&pid);
        node.map(|it| it.peers.insert(peer, link.number)).is_some()
    }

    fn unlink_arrived(&self, link: RemoteLink) {
        let (pid, peer) = (self.canonical(link.process), self.canonical(link.peer));
        Links::of(self).unlink_by_peer(pid, peer, link.number);
    }

    fn signal_arrived(&self, link: RemoteLink, cause: ExitCause) {
        let (pid, peer) = (self.canonical(link.process), self.canonical(link.peer));
        let links = Links::of(self);
        let mut table = links.shard(pid);
        let node = table.nodes.get_mut(&pid);
        let Some(held) = node.and_then(|it| it.peers.get_mut(&peer)) else {
            return;
        };
        if *held == link.number {
            let number = links.next() | SIGNALLED;
            *held = number;
            drop(table);
            let _gone = links.signal(pid, peer, Some(number), cause);
        }
    }

    fn exit_arrived(&self, target: Pid, from: Pid, cause: ExitCause) -> Result<(), NotFound> {
        let (to, from) = (self.canonical(target), self.canonical(from));
        let is_sent = self.is_local(to) && Links::of(self).signal(to, from, None, cause);
        is_sent.then_some(()).ok_or(NotFound { pid: target })
    }
}

/// Compares two PIDs, as both sides do.
fn compare(scheduler: &Handle, one: Pid, other: Pid) -> Ordering {
    let text = |pid| scheduler.absolute(pid).to_string();
    text(one).cmp(&text(other))
}

/// Has a signal passed on to a process of another scheduler.
pub(super) fn signal(
    scheduler: &Handle,
    (from, to): (Pid, Pid),
    link: Option<u64>,
    cause: ExitCause,
) -> bool {
    let Some(remote) = scheduler.remote() else {
        return false;
    };
    let from = scheduler.absolute(from);
    match link {
        Some(number) => {
            remote.signal(RemoteLink::new(from, to, number), cause);
            true
        }
        None => remote.exit(to, from, cause).is_ok(),
    }
}

impl Links {
    pub(super) fn is_elsewhere(&self, pid: Pid) -> bool {
        (self.scheduler.upgrade()).is_some_and(|scheduler| !scheduler.is_local(pid))
    }

    /// Links a process that has a node with a process of another scheduler.
    pub(super) fn link_remote(self: &Arc<Self>, scheduler: &Handle, pid: Pid, peer: Pid) {
        let Some(remote) = scheduler.remote() else {
            return;
        };
        let mut table = self.shard(pid);
        let Some(node) = table.nodes.get_mut(&pid) else {
            // The process has ended meanwhile: this is another thread.
            return;
        };
        if (node.peers.get(&peer)).is_some_and(|held| held & SIGNALLED == 0) {
            return;
        }
        let number = self.next();
        node.peers.insert(peer, number);
        drop(table);
        let link = RemoteLink::new(scheduler.absolute(pid), peer, number);
        remote.link(link);
        let table = self.shard(pid);
        let held = table.nodes.get(&pid).map(|it| it.peers.get(&peer).copied());
        drop(table);
        match held {
            Some(Some(held)) if held == number => {}
            Some(_) => remote.unlink(link),
            None => remote.signal(link, ExitCause::NotFound),
        }
    }

    /// Passes on that a link is taken away, if the peer is of another scheduler.
    pub(super) fn unlink_remote(&self, process: Pid, peer: Pid, number: u64) {
        if let Some(scheduler) = self.scheduler.upgrade()
            && !scheduler.is_local(peer)
            && let Some(remote) = scheduler.remote()
        {
            remote.unlink(RemoteLink::new(scheduler.absolute(process), peer, number));
        }
    }

    /// Takes the half of a link away, with the notice that waits to be shown.
    fn unlink_by_peer(&self, process: Pid, peer: Pid, number: u64) {
        let mut table = self.shard(process);
        if let Some(node) = table.nodes.get_mut(&process)
            && node.peers.get(&peer) == Some(&number)
        {
            node.peers.remove(&peer);
        }
    }
}
