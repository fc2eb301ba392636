//! The directory of a node: the groups and the names of its processes, and the names told by other
//! nodes.
//!
//! **Problem.** Processes of any node join groups and take names, and each node has to know all of
//! them, without a node that decides.
//!
//! **Protocol.** Each node is the only writer of its own entries. (As in OTP's `pg`.)
//! 1. A change goes into the [`Feed`], and wakes the links.
//! 2. A link tells its peer as much as the control lane takes, and goes on when there is room.
//!    After the begin of a session it tells all entries.
//! 3. The link of a peer keeps the peer's entries (`listed.rs`), as long as the session lasts, and
//!    enters them into the groups of this scheduler, and into the names here.
//! 4. Two nodes may give a name at the same time. The older entry wins, by the time at which it was
//!    made and then by the name of the node. The node of the other takes its entry back, and tells
//!    the process that has lost the name.
//!
//! Locks: a scope of groups is locked before the directory, a peer before the directory. Nothing is
//! called with the lock.

use super::feed::Feed;
use super::listing::Listing;
use super::names::{ClusterNameError, ClusterNameErrorKind, Holder, NameRevoked, Names};
use super::start;
use crate::id::Half;
use ganger_link::carrier::{CarriedScopes, GroupCarrier, MAX_NAME};
use ganger_link::{Groups, JoinErrorKind};
use ganger_proc_api::{Message, NodeName, Pid, SendErrorKind};
use ganger_sched::{Address, ExitAction, Recipient};
use ganger_sync::contain;
use ganger_sync::sync::{Mutex, lock};
use std::sync::{Arc, OnceLock, Weak};

/// The most joins and names of a node.
pub(crate) const MAX_ENTRIES: usize = 1 << 18;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// The scope, the group, and the process.
    Member(Arc<str>, Arc<str>, Pid),
    Name(Arc<str>),
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Joins(usize),
    Holder(Pid, u64),
}

/// The ways to the other nodes.
pub(crate) trait Ways: Send + Sync {
    /// Returns whether the scheduler of the node has the process.
    fn is_local(&self, process: Pid) -> bool;

    /// Has all links tell their peers of changes.
    fn has_listings(&self);

    /// Sends a message to the members as [`GroupCarrier::broadcast`] does.
    fn broadcast(&self, members: &[Pid], message: Message) -> Result<(), SendErrorKind>;
}

pub(crate) struct Directory {
    node: NodeName,
    /// Known to all nodes of the cluster.
    key: u64,
    ways: OnceLock<Weak<dyn Ways>>,
    scopes: CarriedScopes,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    feed: Feed<Half, Key, Value>,
    names: Names,
    /// The joins and names of this node.
    entries: usize,
}

impl Directory {
    pub(crate) fn new(node: NodeName, key: u64) -> Self {
        Self {
            node,
            key,
            ways: OnceLock::new(),
            scopes: CarriedScopes::default(),
            state: Mutex::default(),
        }
    }

    /// Sets the node's connections, once.
    pub(crate) fn connect(&self, ways: Weak<dyn Ways>) {
        let _first = self.ways.set(ways);
    }

    fn ways(&self) -> Option<Arc<dyn Ways>> {
        self.ways.get().and_then(Weak::upgrade)
    }

    fn is_local(&self, process: Pid) -> bool {
        self.ways().is_some_and(|ways| ways.is_local(process))
    }

    /// Returns the groups of a scope of the cluster.
    pub(crate) fn groups(own: &Arc<Self>, scope: &str) -> Groups {
        let carrier = Arc::clone(own) as Arc<dyn GroupCarrier>;
        own.scopes.groups(own.node, scope, &carrier)
    }

    /// Begins to tell the peer of this session.
    pub(crate) fn begin(&self, session: Half) {
        lock(&self.state).feed.begin(session);
    }

    pub(crate) fn end(&self, session: Half) {
        lock(&self.state).feed.end(session);
    }

    /// Takes the next entry to tell in this session.
    pub(crate) fn next(&self, session: Half) -> Option<Listing> {
        let (key, value) = lock(&self.state).feed.next(session)?;
        Some(match (key, value) {
            (Key::Member(scope, group, pid), value) => Listing::Joined {
                scope,
                group,
                pid,
                joins: match value {
                    Some(Value::Joins(joins)) => joins as u64,
                    _ => 0,
                },
            },
            (Key::Name(name), value) => Listing::Named {
                name,
                holder: match value {
                    Some(Value::Holder(pid, since)) => Some((pid, since)),
                    _ => None,
                },
            },
        })
    }

    /// Has the links tell their peers.
    fn wake(&self) {
        if let Some(ways) = self.ways() {
            ways.has_listings();
        }
    }

    /// Returns the process with the name, as this node knows it.
    pub(crate) fn whereis(&self, name: &str) -> Option<Pid> {
        let state = lock(&self.state);
        state.names.winner(name).map(|it| it.pid)
    }

    /// Returns all names with their processes, in the order of their texts.
    pub(crate) fn names(&self) -> Vec<(Arc<str>, Pid)> {
        lock(&self.state).names.all()
    }

    /// Returns the number of known names in the cluster.
    pub(crate) fn name_count(&self) -> usize {
        lock(&self.state).names.count()
    }

    /// Returns the first names in the cluster, in the order of their texts.
    pub(crate) fn first_names(&self, most: usize) -> Vec<(Arc<str>, NodeName, Pid)> {
        lock(&self.state).names.first(most)
    }

    /// Gives a process of this node a name in the cluster.
    pub(crate) fn register(
        self: &Arc<Self>,
        name: &str,
        process: &Address,
        lost: Recipient<NameRevoked>,
    ) -> Result<(), ClusterNameError> {
        let pid = process.pid();
        let refuse = |kind| {
            Err(ClusterNameError {
                name: name.into(),
                pid,
                kind,
            })
        };
        if name.len() > MAX_NAME {
            return refuse(ClusterNameErrorKind::TooLong);
        }
        if !self.is_local(pid) {
            return refuse(ClusterNameErrorKind::Elsewhere);
        }
        if process.is_closed() {
            return refuse(ClusterNameErrorKind::Ended);
        }
        let name: Arc<str> = name.into();
        let mut state = lock(&self.state);
        if let Some(holder) = state.names.winner(&name) {
            let holder = holder.pid;
            return match holder == pid {
                true => Ok(()),
                false => refuse(ClusterNameErrorKind::Taken { holder }),
            };
        }
        if state.entries >= MAX_ENTRIES {
            return refuse(ClusterNameErrorKind::Full);
        }
        let since = start::micros();
        let number = state.names.insert_own(&name, self.node, pid, since, lost);
        state.entries += 1;
        let key = Key::Name(Arc::clone(&name));
        state.feed.set(key, Some(Value::Holder(pid, since)));
        drop(state);
        let directory = Arc::downgrade(self);
        let action = Box::new(FreeName {
            directory,
            name: Arc::clone(&name),
            number,
        });
        if process.add_exit_action(action).is_err() {
            self.free(&name, |holder| holder.number == number);
            return refuse(ClusterNameErrorKind::Ended);
        }
        self.wake();
        Ok(())
    }

    /// Takes a name away from its process of this node. Returns the process.
    pub(crate) fn unregister(&self, name: &str) -> Option<Pid> {
        self.free(name, |_| true)
    }

    fn free(&self, name: &str, is_meant: impl FnOnce(&Holder) -> bool) -> Option<Pid> {
        let mut state = lock(&self.state);
        state.names.own(name).filter(|it| is_meant(it))?;
        let gone = state.take_own(name);
        drop(state);
        self.wake();
        // The recipient inside is dropped without the lock.
        gone.map(|it| it.pid)
    }

    /// Notes that a peer has given its process the name.
    pub(crate) fn named(&self, name: &Arc<str>, node: NodeName, pid: Pid, since: u64) {
        let mut state = lock(&self.state);
        state.names.insert_far(name, node, pid, since);
        let Some((own, winner)) = state.names.conflict(name) else {
            return;
        };
        let lost = match own == winner {
            true => None,
            false => state.take_own(name),
        };
        drop(state);
        let node = self.node;
        let other = if own == winner { pid } else { own };
        tracing::warn!(
            target: "ganger::cluster", %node, name = %name, holder = %winner, loser = %other,
            "two processes had a name: the older entry wins"
        );
        let Some(recipient) = lost.and_then(|it| it.lost) else {
            return;
        };
        self.wake();
        let notice = NameRevoked {
            name: Arc::clone(name),
            process: own,
            holder: winner,
        };
        // The recipient makes its message of the notice. A panic does not concern the link.
        let sent = contain(|| recipient.send_system(notice));
        if sent.is_none() {
            let text = "the recipient of a lost name has panicked";
            tracing::error!(target: "ganger::cluster", name = %name, "{text}");
        }
    }

    /// Notes that the process of the peer has the name no more.
    pub(crate) fn unnamed(&self, name: &str, pid: Pid) {
        lock(&self.state).names.remove_far(name, pid);
    }
}

impl State {
    fn take_own(&mut self, name: &str) -> Option<Holder> {
        let gone = self.names.take_own(name);
        if gone.is_some() {
            self.entries -= 1;
            self.feed.set(Key::Name(name.into()), None);
        }
        gone
    }
}

impl GroupCarrier for Directory {
    fn admits(&self, scope: &str, group: &str, process: Pid) -> Result<(), JoinErrorKind> {
        if scope.len().max(group.len()) > MAX_NAME {
            return Err(JoinErrorKind::NameTooLong);
        }
        if !self.is_local(process) {
            return Err(JoinErrorKind::Elsewhere);
        }
        match lock(&self.state).entries < MAX_ENTRIES {
            true => Ok(()),
            false => Err(JoinErrorKind::Full),
        }
    }

    fn joined(&self, scope: &Arc<str>, group: &Arc<str>, process: Pid, joins: usize) {
        let key = Key::Member(Arc::clone(scope), Arc::clone(group), process);
        let mut state = lock(&self.state);
        let before = match state.feed.get(&key) {
            Some(Value::Joins(joins)) => *joins,
            _ => 0,
        };
        state.entries = state.entries + joins - before;
        let value = (joins > 0).then_some(Value::Joins(joins));
        state.feed.set(key, value);
    }

    fn changed(&self) {
        self.wake();
    }

    fn key(&self) -> u64 {
        self.key
    }

    fn broadcast(&self, members: &[Pid], message: Message) -> Result<(), SendErrorKind> {
        let ways = self.ways().ok_or(SendErrorKind::Stopping)?;
        ways.broadcast(members, message)
    }
}

/// The action at the end of a process with a name.
struct FreeName {
    directory: Weak<Directory>,
    name: Arc<str>,
    number: u64,
}

impl ExitAction for FreeName {
    fn release(&mut self, _: Pid) {
        if let Some(directory) = self.directory.upgrade() {
            directory.free(&self.name, |holder| holder.number == self.number);
        }
    }

    fn is_over(&self) -> bool {
        let Some(directory) = self.directory.upgrade() else {
            return true;
        };
        let state = lock(&directory.state);
        let own = state.names.own(&self.name);
        own.is_none_or(|it| it.number != self.number)
    }
}
