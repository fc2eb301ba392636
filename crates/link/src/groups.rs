//! Groups of processes, which senders reach together.
//!
//! **Protocol.** A scope has a single lock, under which joins, leaves and snapshots are in one
//! order. A process that joins gets an entry, and then an exit action. At the end of the process,
//! the action has it leave all groups before other processes hear of the end. If the process takes
//! no action, because it has ended, the entry goes again.
//!
//! A scope lives while it is in use: by values, or by exit actions, which keep it by a [`Hold`].
//! When the last entry of a process goes, the hold is released: the exit action then keeps nothing.
//!
//! The groups of a cluster are scopes with a [carrier](GroupCarrier). Each node alone says which of
//! its processes are members; the carrier tells the other nodes, and enters their members here.
//!
//! No message is sent under the lock. A change goes into the outboxes of its monitors under the
//! lock. Afterwards, one thread at a time empties an outbox, so changes arrive in their order.

mod carried;
mod carrier;
mod join_error;
mod monitors;
mod outbox;
mod scope;
mod snapshot;

pub use carried::{CarriedScopes, arrived};
pub use carrier::{GroupCarrier, MAX_JOINS, MAX_NAME, MAX_TARGETS};
use ganger_proc_api::{Message, NodeName, Pid, SendError, SendErrorKind};
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::internal::HashKey;
use ganger_sched::{Address, Handle, Recipient};
use ganger_sync::sync::{Mutex, lock};
pub use join_error::{JoinError, JoinErrorKind};
pub use monitors::GroupMonitor;
use monitors::{EndMonitor, Place};
use outbox::Outbox;
pub use outbox::{GroupChange, GroupNotice};
use scope::{Hold, Members, Monitor, Scope, Scopes};
use snapshot::{Member, Snapshot, mixed};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

/// A scope: groups by their names. Cloning it is cheap. Scopes know nothing of each other.
///
/// ```
/// use ganger_link::Groups;
/// use ganger_proc_api::{BoxError, actor_fn};
/// use ganger_sched::Scheduler;
///
/// let scheduler = Scheduler::start_default()?;
/// let listener = || actor_fn(|_, text: String, out| { out.done(text.len()); Ok(()) });
/// let one = scheduler.spawn(listener())?;
/// let other = scheduler.spawn(listener())?;
/// let lobby = Groups::of(&scheduler, "chat").group("lobby");
/// lobby.join(&one)?;
/// lobby.join(other.address())?;
/// assert_eq!(lobby.broadcast(&"hello".to_owned()).taken, 2);
/// assert_eq!(one.wait().take::<usize>()? + other.wait().take::<usize>()?, 10);
/// assert!(lobby.members().is_empty(), "those that have ended have left");
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Clone)]
pub struct Groups {
    scope: Arc<Scope>,
}

/// A group of a scope. Cloning it is cheap. A group exists while it has members.
#[derive(Clone)]
pub struct Group {
    scope: Arc<Scope>,
    name: Arc<str>,
}

/// The groups of a scope with their members, in the order of the groups' names.
pub type AllMembers = Vec<(Arc<str>, Vec<Pid>)>;

/// The outcome of a broadcast: the numbers of members that have taken the message, were full, were
/// gone, or take messages of another type. Members of other nodes count together: as taken when the
/// message is on its way to their node. There a full member gets nothing, as within a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivered {
    /// The members with the message in their mailboxes, or on its way to their node.
    pub taken: usize,
    /// The members without room, or without room on the way to their node.
    pub full: usize,
    /// The members that have ended, or whose node is not connected.
    pub gone: usize,
    /// The members that take only messages of another type, or whose node can't be sent the type.
    pub mistaken: usize,
}

/// The choice of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupRouting {
    /// The next member, in the order of joining. In a group of a cluster the next member of this
    /// node, and one of another node only where this node has none.
    RoundRobin,
    /// The member that this key leads to. When a member leaves, only its own keys lead to another
    /// member. When a member joins as the `n`-th, a share of 1/n of the keys leads to it, and the
    /// rest of the keys stays.
    ///
    /// The member of a key differs from scope to scope, and from group to group: strangers can't
    /// choose keys that all meet at the same member. All nodes of a cluster which know the same
    /// members choose the same member.
    Key(u64),
}

impl GroupRouting {
    /// Picks the member that this key [leads to](Self::Key). The hash of a value may differ between
    /// programs of two compilers: nodes of both agree on a [`Key`](Self::Key) with a number alone.
    pub fn key(key: impl Hash) -> Self {
        // Without a secret: the group hashes the key again, with the secret of its scope.
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        Self::Key(hasher.finish())
    }
}

impl Groups {
    /// Gives the scope with this name in a scheduler. Other nodes know nothing of it.
    #[must_use]
    pub fn of(scheduler: &Handle, scope: &str) -> Self {
        let scopes = scheduler.extension(|_| Scopes::default());
        Self::found(&scopes, scheduler.node_name(), scope, None)
    }

    fn found(
        scopes: &Arc<Scopes>,
        node: Option<NodeName>,
        scope: &str,
        carrier: Option<&Arc<dyn GroupCarrier>>,
    ) -> Self {
        let mut all = lock(&scopes.0);
        if let Some(scope) = all.get(scope).and_then(Weak::upgrade) {
            return Self { scope };
        }
        let name: Arc<str> = scope.into();
        let made = Arc::new(Scope {
            name: Arc::clone(&name),
            scopes: Arc::downgrade(scopes),
            key: HashKey::random(),
            node,
            carrier: carrier.cloned(),
            inner: Mutex::default(),
        });
        all.insert(name, Arc::downgrade(&made));
        Self { scope: made }
    }

    /// Gives the group with this name.
    #[must_use]
    pub fn group(&self, name: &str) -> Group {
        Group {
            scope: Arc::clone(&self.scope),
            name: name.into(),
        }
    }

    /// Returns the names of the groups that have members, in the order of their texts.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        let inner = lock(&self.scope.inner);
        let groups = inner.groups.iter().filter(|it| !it.1.joins.is_empty());
        groups.map(|(name, _)| Arc::clone(name)).collect()
    }

    /// Monitors all groups: returns their members as they are, and sends every later change of any
    /// group: see [`Group::monitor`].
    #[must_use]
    pub fn monitor(&self, to: &Recipient<GroupNotice>) -> (AllMembers, GroupMonitor) {
        let (outbox, hold) = (Outbox::new(to), Hold::new(&self.scope));
        let mut inner = lock(&self.scope.inner);
        let number = inner.next();
        inner.monitors.insert(number, Monitor::new(&outbox, &hold));
        let groups = inner.groups.iter().filter(|it| !it.1.joins.is_empty());
        let groups = groups.map(|(name, members)| (Arc::clone(name), members.pids()));
        let groups = groups.collect();
        drop(inner);
        let place = Place {
            scope: Arc::clone(&self.scope),
            group: None,
            number,
        };
        EndMonitor::begin(&place, &outbox, hold);
        let monitor = GroupMonitor::new(&outbox, place);
        (groups, monitor)
    }
}

impl Group {
    /// Returns the group's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Has a process join. The process is in the group as often as it has joined, until it has left
    /// as often or has ended. When the process fails and is restarted in place, it leaves the
    /// groups that it has joined by its own calls.
    ///
    /// # Errors
    /// [`JoinError`] when the process has ended. In a group of a cluster also when the process is
    /// of another node, a name is too long, or this node has too many members.
    pub fn join<M>(&self, process: impl AsRef<Address<M>>) -> Result<(), JoinError> {
        self.scope.join(&self.name, process.as_ref().untyped())
    }

    /// Has a process of this node leave once. Returns whether it was in the group.
    pub fn leave(&self, process: Pid) -> bool {
        self.scope.leave(&self.name, process)
    }

    /// Returns the members, in the order in which they have joined. A member that has joined
    /// several times is in the list as often.
    #[must_use]
    pub fn members(&self) -> Vec<Pid> {
        let inner = lock(&self.scope.inner);
        let members = inner.groups.get(&self.name);
        members.map_or_else(Vec::new, Members::pids)
    }

    /// Returns the [members](Self::members) that are processes of this node.
    #[must_use]
    pub fn local_members(&self) -> Vec<Pid> {
        let mut members = self.members();
        members.retain(|pid| pid.node().is_none());
        members
    }

    /// Gives the present members, and reports every later change: no change is lost in between, and
    /// none comes twice. The changes come to a process that makes its messages of them, as control
    /// messages that no limit refuses. Each reports its change until the monitor is
    /// [ended](GroupMonitor::end).
    ///
    /// ```
    /// use ganger_link::{GroupNotice, Groups};
    /// use ganger_proc_api::{BoxError, actor_fn};
    /// use ganger_sched::Scheduler;
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let monitor = scheduler.spawn(actor_fn(|_, notice: GroupNotice, out| {
    ///     out.done(notice.change().is_some_and(|it| it.is_join));
    ///     Ok(())
    /// }))?;
    /// let lobby = Groups::of(&scheduler, "chat").group("lobby");
    /// let (members, _monitor) = lobby.monitor(&monitor.address().recipient());
    /// assert!(members.is_empty());
    /// lobby.join(scheduler.spawn(actor_fn(|_, (): (), _| Ok(())))?.address())?;
    /// assert!(monitor.wait().take::<bool>()?);
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn monitor(&self, to: &Recipient<GroupNotice>) -> (Vec<Pid>, GroupMonitor) {
        let (outbox, hold) = (Outbox::new(to), Hold::new(&self.scope));
        let mut inner = lock(&self.scope.inner);
        let number = inner.next();
        let members = inner.groups.entry(Arc::clone(&self.name)).or_default();
        members
            .monitors
            .insert(number, Monitor::new(&outbox, &hold));
        let members = members.pids();
        drop(inner);
        let place = Place {
            scope: Arc::clone(&self.scope),
            group: Some(Arc::clone(&self.name)),
            number,
        };
        EndMonitor::begin(&place, &outbox, hold);
        let monitor = GroupMonitor::new(&outbox, place);
        (members, monitor)
    }

    /// Sends the message to each member once. Members that join meanwhile do not get it. The
    /// members of another node in a group of a cluster get it by a message to their node for each
    /// 4,096 of them.
    pub fn broadcast<M: Clone + Send + 'static>(&self, message: &M) -> Delivered {
        let members = self.snapshot();
        let mut delivered = Delivered::default();
        for member in members.here() {
            delivered.count(1, member.process.send_value(message.clone()));
        }
        if let Some(carrier) = &self.scope.carrier {
            let nodes = members
                .elsewhere()
                .chunk_by(|it, next| it.node == next.node);
            for part in nodes.flat_map(|node| node.chunks(MAX_TARGETS)) {
                let targets: Vec<_> = part.iter().map(|it| it.process.pid()).collect();
                let sent = carrier.broadcast(&targets, Message::of(message.clone()));
                delivered.count_of(part.len(), sent);
            }
        }
        delivered
    }

    /// Sends a message as [`broadcast`](Self::broadcast) does, to the members of this node alone.
    pub fn broadcast_local<M: Clone + Send + 'static>(&self, message: &M) -> Delivered {
        let mut delivered = Delivered::default();
        let members = self.snapshot();
        for member in members.here().iter().filter(|it| it.node.is_none()) {
            delivered.count(1, member.process.send_value(message.clone()));
        }
        delivered
    }

    /// Picks a member; each member counts once. O(1) in turn, and O(n) with a key, without a lock.
    /// The first pick or broadcast after a change of the group costs O(n), during which no process
    /// of the scope joins or leaves.
    #[must_use]
    pub fn pick(&self, pick: GroupRouting) -> Option<Address> {
        let members = self.snapshot();
        let member = match pick {
            GroupRouting::RoundRobin => {
                let turn = self.scope.next_turn(&self.name);
                let among = match members.here() {
                    [] => members.elsewhere(),
                    here => here,
                };
                among.get(turn.checked_rem(among.len())?)
            }
            // The highest of all pairs: the keys of all other members stay. (Rendezvous hashing)
            GroupRouting::Key(key) => {
                let key = self.scope.key_of(&self.name, key);
                let score = |it: &&Member| mixed(key ^ it.identity);
                members.all().iter().max_by_key(score)
            }
        };
        member.map(|it| it.process.clone())
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        let mut inner = lock(&self.scope.inner);
        match inner.groups.get_mut(&self.name) {
            Some(members) => members.snapshot(self.scope.carried_from()),
            None => Arc::default(),
        }
    }
}

impl Delivered {
    fn count(&mut self, members: usize, sent: Result<(), SendError>) {
        self.count_of(members, sent.map_err(|error| error.kind));
    }

    fn count_of(&mut self, members: usize, sent: Result<(), SendErrorKind>) {
        *match sent {
            Ok(()) => &mut self.taken,
            Err(SendErrorKind::Full) => &mut self.full,
            Err(
                SendErrorKind::WrongType(_) | SendErrorKind::NoCodec(_) | SendErrorKind::TooLarge,
            ) => &mut self.mistaken,
            Err(_) => &mut self.gone,
        } += members;
    }
}

impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("name", &self.name)
            .field("members", &self.members())
            .finish()
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
