//! Groups of processes, which others reach together.
//!
//! **Protocol.** A scope has one lock, under which joins, leaves and snapshots are in one order. A
//! process that joins gets an entry, and then an exit action, which has it leave all groups before
//! others are told of its end. If it takes no action any more, the entry goes again.
//!
//! No message is sent under the lock. A change goes into the outboxes of its monitors under the
//! lock. After that, one thread at a time empties an outbox, so changes arrive in their order.

mod outbox;

use crate::shrink::shrink;
use ganger_proc_api::{Message, Pid, SendErrorKind};
use ganger_sched::{Address, ExitAction, Handle, Recipient};
use ganger_sync::sync::{Mutex, lock};
use outbox::Outbox;
pub use outbox::{GroupChange, GroupMonitor, GroupNotice};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

/// The scopes of a scheduler that are in use, by their names.
#[derive(Default)]
struct Scopes(Mutex<HashMap<Box<str>, Weak<Scope>>>);

/// A scope: groups by their names. Cloning it is cheap. Scopes know nothing of each other.
///
/// ```
/// use ganger_link::Groups;
/// use ganger_proc_api::{BoxError, actor_fn};
/// use ganger_sched::Scheduler;
///
/// let scheduler = Scheduler::start_default()?;
/// let listener = || actor_fn(|_, text: String, out| { out.done(text.len()); Ok(()) });
/// let one = scheduler.spawn_actor(listener())?;
/// let other = scheduler.spawn_actor(listener())?;
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

/// A group of a scope. Cloning it is cheap. It exists as long as it has members.
#[derive(Clone)]
pub struct Group {
    scope: Arc<Scope>,
    name: Arc<str>,
}

/// It lives as long as it has members, monitors, or values by which it is used.
struct Scope {
    name: Box<str>,
    scopes: Weak<Scopes>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    groups: BTreeMap<Arc<str>, Members>,
    joined: HashMap<Pid, Joined>,
    /// Monitors of the whole scope.
    monitors: BTreeMap<u64, Arc<Outbox>>,
    /// The number of the last join or monitor.
    last: u64,
}

/// A process that has joined, and has an exit action for that.
struct Joined {
    number: u64,
    process: Address,
    /// The numbers of its joins of each group.
    groups: BTreeMap<Arc<str>, Vec<u64>>,
}

#[derive(Default)]
struct Members {
    /// One for each join, in their order.
    joins: BTreeMap<u64, Address>,
    monitors: BTreeMap<u64, Arc<Outbox>>,
    /// Each member once. None after a change.
    snapshot: Option<Arc<[Address]>>,
    /// Whose turn it is.
    turn: usize,
}

/// A process was not taken into a group, because it has ended or is of another scheduler.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pid} can't join a group: it has ended")]
pub struct JoinError {
    /// The process.
    pub pid: Pid,
}

/// The groups of a scope that have members, in the order of their names, with these.
pub type AllMembers = Vec<(Arc<str>, Vec<Pid>)>;

/// What has become of the messages of a broadcast: how many members have taken it, were full, were
/// gone, or take messages of another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivered {
    /// So many have it in their mailboxes.
    pub taken: usize,
    /// So many had no room.
    pub full: usize,
    /// So many have ended.
    pub gone: usize,
    /// So many take messages of another type alone.
    pub mistaken: usize,
}

/// Which member is picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The next one, in the order of joining.
    RoundRobin,
    /// The one that this key leads to: the same one while that is a member.
    Key(u64),
}

impl Pick {
    /// The member that this key leads to.
    pub fn key(key: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        Self::Key(hasher.finish())
    }
}

impl Groups {
    /// The scope with that name in a scheduler.
    #[must_use]
    pub fn of(scheduler: &Handle, scope: &str) -> Self {
        let scopes = scheduler.extension(|_| Scopes::default());
        let mut all = lock(&scopes.0);
        if let Some(scope) = all.get(scope).and_then(Weak::upgrade) {
            return Self { scope };
        }
        let name: Box<str> = scope.into();
        let made = Arc::new(Scope {
            name: name.clone(),
            scopes: Arc::downgrade(&scopes),
            inner: Mutex::default(),
        });
        all.insert(name, Arc::downgrade(&made));
        Self { scope: made }
    }

    /// The group with that name.
    #[must_use]
    pub fn group(&self, name: &str) -> Group {
        Group {
            scope: Arc::clone(&self.scope),
            name: name.into(),
        }
    }

    /// The names of the groups that have members, in the order of their texts.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        let inner = lock(&self.scope.inner);
        let groups = inner.groups.iter().filter(|it| !it.1.joins.is_empty());
        groups.map(|(name, _)| Arc::clone(name)).collect()
    }

    /// All groups with their members as they are, and every later change of any of them: see
    /// [`Group::monitor`].
    #[must_use]
    pub fn monitor(&self, to: &Recipient<GroupNotice>) -> (AllMembers, GroupMonitor) {
        let outbox = Outbox::new(to);
        let mut inner = lock(&self.scope.inner);
        let number = inner.next();
        inner.monitors.insert(number, Arc::clone(&outbox));
        let groups = inner.groups.iter().filter(|it| !it.1.joins.is_empty());
        let groups = groups.map(|(name, members)| (Arc::clone(name), members.pids()));
        let groups = groups.collect();
        drop(inner);
        let place = Place {
            scope: Arc::clone(&self.scope),
            group: None,
            number,
        };
        EndMonitor::begin(&place, &outbox);
        let monitor = outbox.monitored_at(place);
        (groups, monitor)
    }
}

impl Group {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A process joins. It is in the group as often as it has joined, until it has left as often or
    /// has ended.
    ///
    /// # Errors
    /// [`JoinError`] when the process has ended.
    pub fn join<M: ?Sized>(&self, process: impl AsRef<Address<M>>) -> Result<(), JoinError> {
        self.scope.join(&self.name, process.as_ref().untyped())
    }

    /// A process leaves once. Says whether it was in the group.
    pub fn leave(&self, process: Pid) -> bool {
        self.scope.leave(&self.name, process)
    }

    /// Its members, in the order in which they have joined. One that has joined several times is
    /// there as often.
    #[must_use]
    pub fn members(&self) -> Vec<Pid> {
        let inner = lock(&self.scope.inner);
        let members = inner.groups.get(&self.name);
        members.map_or_else(Vec::new, Members::pids)
    }

    /// The members as they are, and every later change: none is lost in between, and none comes
    /// twice. The changes come to a process that makes its messages of them, as control messages
    /// that no limit refuses. Each says its change until the monitor is [ended](GroupMonitor::end).
    ///
    /// ```
    /// use ganger_link::{GroupNotice, Groups};
    /// use ganger_proc_api::{BoxError, actor_fn};
    /// use ganger_sched::Scheduler;
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let monitor = scheduler.spawn_actor(actor_fn(|_, notice: GroupNotice, out| {
    ///     out.done(notice.change().is_some_and(|it| it.is_join));
    ///     Ok(())
    /// }))?;
    /// let lobby = Groups::of(&scheduler, "chat").group("lobby");
    /// let (members, _monitor) = lobby.monitor(&monitor.address().recipient());
    /// assert!(members.is_empty());
    /// lobby.join(scheduler.spawn_actor(actor_fn(|_, (): (), _| Ok(())))?.address())?;
    /// assert!(monitor.wait().take::<bool>()?);
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn monitor(&self, to: &Recipient<GroupNotice>) -> (Vec<Pid>, GroupMonitor) {
        let outbox = Outbox::new(to);
        let mut inner = lock(&self.scope.inner);
        let number = inner.next();
        let members = inner.groups.entry(Arc::clone(&self.name)).or_default();
        members.monitors.insert(number, Arc::clone(&outbox));
        let members = members.pids();
        drop(inner);
        let place = Place {
            scope: Arc::clone(&self.scope),
            group: Some(Arc::clone(&self.name)),
            number,
        };
        EndMonitor::begin(&place, &outbox);
        let monitor = outbox.monitored_at(place);
        (members, monitor)
    }

    /// Sends the message to each member once. Those that join meanwhile do not get it.
    pub fn broadcast<M: Clone + Send + 'static>(&self, message: &M) -> Delivered {
        let mut delivered = Delivered::default();
        for member in self.snapshot().iter() {
            match member.send(Message::of(message.clone())) {
                Ok(()) => delivered.taken += 1,
                Err(error) if error.kind == SendErrorKind::Full => delivered.full += 1,
                Err(error) if matches!(error.kind, SendErrorKind::WrongType(_)) => {
                    delivered.mistaken += 1;
                }
                Err(_) => delivered.gone += 1,
            }
        }
        delivered
    }

    /// One of the members, each of which counts once.
    #[must_use]
    pub fn pick(&self, pick: Pick) -> Option<Address> {
        let members = self.snapshot();
        match pick {
            Pick::RoundRobin => {
                let turn = self.scope.next_turn(&self.name);
                members.get(turn.checked_rem(members.len())?).cloned()
            }
            // The highest of all pairs: when one leaves, the keys of the others stay.
            Pick::Key(key) => {
                let score = |it: &&Address| {
                    let mut hasher = DefaultHasher::new();
                    (key, it.pid().id()).hash(&mut hasher);
                    hasher.finish()
                };
                members.iter().max_by_key(score).cloned()
            }
        }
    }

    fn snapshot(&self) -> Arc<[Address]> {
        let mut inner = lock(&self.scope.inner);
        match inner.groups.get_mut(&self.name) {
            Some(members) => members.snapshot(),
            None => Arc::from([]),
        }
    }
}

impl Members {
    fn pids(&self) -> Vec<Pid> {
        self.joins.values().map(Address::pid).collect()
    }

    fn snapshot(&mut self) -> Arc<[Address]> {
        let joins = &self.joins;
        let snapshot = self.snapshot.get_or_insert_with(|| {
            let mut seen = std::collections::HashSet::new();
            let members = joins.values().filter(|it| seen.insert(it.pid()));
            members.cloned().collect()
        });
        Arc::clone(snapshot)
    }

    fn is_empty(&self) -> bool {
        self.joins.is_empty() && self.monitors.is_empty()
    }
}

/// What is to be done without the lock.
#[derive(Default)]
struct Later {
    outboxes: Vec<Arc<Outbox>>,
    /// The destructor of an address may be another's code.
    gone: Vec<Address>,
    snapshots: Vec<Arc<[Address]>>,
}

impl Later {
    fn carry_out(self) {
        for outbox in &self.outboxes {
            outbox.empty();
        }
    }
}

impl Inner {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Notes a change of a group for its monitors.
    fn tell(&mut self, group: &Arc<str>, pid: Pid, is_join: bool, later: &mut Later) {
        let members = self.groups.get_mut(group);
        let of_group = members.map(|it| {
            later.snapshots.extend(it.snapshot.take());
            &it.monitors
        });
        let of_group = of_group.into_iter().flat_map(BTreeMap::values);
        for outbox in of_group.chain(self.monitors.values()) {
            let group = Arc::clone(group);
            outbox.put(GroupChange {
                group,
                pid,
                is_join,
            });
            later.outboxes.push(Arc::clone(outbox));
        }
    }

    /// Takes that join of the process out of the group.
    fn take_join(&mut self, group: &Arc<str>, pid: Pid, join: u64, later: &mut Later) {
        if let Some(members) = self.groups.get_mut(group) {
            later.gone.extend(members.joins.remove(&join));
        }
        self.tell(group, pid, false, later);
        self.forget_if_empty(group);
    }

    fn forget_if_empty(&mut self, group: &Arc<str>) {
        if self.groups.get(group).is_some_and(Members::is_empty) {
            self.groups.remove(group);
        }
    }

    /// The process leaves all groups.
    fn take_all(&mut self, pid: Pid, number: u64, later: &mut Later) {
        if self.joined.get(&pid).is_none_or(|it| it.number != number) {
            return;
        }
        let Some(joined) = self.joined.remove(&pid) else {
            return;
        };
        shrink(&mut self.joined);
        for (group, joins) in joined.groups {
            for join in joins.into_iter().rev() {
                self.take_join(&group, pid, join, later);
            }
        }
        later.gone.push(joined.process);
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some(scopes) = self.scopes.upgrade() {
            let mut all = lock(&scopes.0);
            // Another one may have its name by now.
            if all.get(&self.name).is_some_and(|it| it.strong_count() == 0) {
                all.remove(&self.name);
                shrink(&mut all);
            }
        }
    }
}

impl Scope {
    fn join(self: &Arc<Self>, group: &Arc<str>, process: &Address) -> Result<(), JoinError> {
        let pid = process.pid();
        if process.is_closed() {
            return Err(JoinError { pid });
        }
        let mut later = Later::default();
        let mut inner = lock(&self.inner);
        // One that has had the PID before.
        if let Some(earlier) = inner.joined.get(&pid)
            && !earlier.process.is_same(process)
        {
            let number = earlier.number;
            inner.take_all(pid, number, &mut later);
        }
        let number = inner.next();
        let is_new = !inner.joined.contains_key(&pid);
        let joined = inner.joined.entry(pid).or_insert_with(|| Joined {
            number,
            process: process.clone(),
            groups: BTreeMap::new(),
        });
        let joins = joined.groups.entry(Arc::clone(group)).or_default();
        joins.push(number);
        let members = inner.groups.entry(Arc::clone(group)).or_default();
        members.joins.insert(number, process.clone());
        inner.tell(group, pid, true, &mut later);
        drop(inner);
        later.carry_out();
        if !is_new {
            return Ok(());
        }
        let scope = Arc::clone(self);
        let action = Box::new(LeaveAll { scope, number });
        if process.add_exit_action(action).is_ok() {
            return Ok(());
        }
        self.leave_all(pid, number);
        Err(JoinError { pid })
    }

    fn leave(&self, group: &Arc<str>, pid: Pid) -> bool {
        let mut later = Later::default();
        let mut inner = lock(&self.inner);
        let Some(joined) = inner.joined.get_mut(&pid) else {
            return false;
        };
        let Some(joins) = joined.groups.get_mut(group) else {
            return false;
        };
        let last = joins.pop();
        if joins.is_empty() {
            joined.groups.remove(group);
        }
        let Some(last) = last else { return false };
        inner.take_join(group, pid, last, &mut later);
        drop(inner);
        later.carry_out();
        true
    }

    fn leave_all(&self, pid: Pid, number: u64) {
        let mut later = Later::default();
        lock(&self.inner).take_all(pid, number, &mut later);
        later.carry_out();
    }

    fn next_turn(&self, group: &Arc<str>) -> usize {
        let mut inner = lock(&self.inner);
        let Some(members) = inner.groups.get_mut(group) else {
            return 0;
        };
        let turn = members.turn;
        members.turn = turn.wrapping_add(1);
        turn
    }
}

/// The action at the end of a process that has joined.
struct LeaveAll {
    scope: Arc<Scope>,
    number: u64,
}

impl ExitAction for LeaveAll {
    fn release(&mut self, process: Pid) {
        self.scope.leave_all(process, self.number);
    }
}

/// Where a monitor is: at a group, or without a name at the scope.
#[derive(Clone)]
struct Place {
    scope: Arc<Scope>,
    group: Option<Arc<str>>,
    number: u64,
}

impl Place {
    /// Takes the monitor away, if it is there. O(log n).
    fn leave(&self) {
        let mut inner = lock(&self.scope.inner);
        let inner_mut = &mut *inner;
        let gone = match &self.group {
            None => inner_mut.monitors.remove(&self.number),
            Some(group) => {
                let members = inner_mut.groups.get_mut(group);
                let gone = members.and_then(|it| it.monitors.remove(&self.number));
                inner_mut.forget_if_empty(group);
                gone
            }
        };
        drop(inner);
        // Its destructor may be another's code.
        drop(gone);
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.group).finish()
    }
}

/// The action at the end of a process that monitors.
struct EndMonitor {
    place: Place,
    outbox: Weak<Outbox>,
}

impl EndMonitor {
    fn begin(place: &Place, outbox: &Arc<Outbox>) {
        let monitor = outbox.monitor();
        let action = Self {
            place: place.clone(),
            outbox: Arc::downgrade(outbox),
        };
        if let Err(gone) = monitor.add_exit_action(Box::new(action)) {
            gone.into_action().release(monitor.pid());
        }
    }
}

impl ExitAction for EndMonitor {
    fn release(&mut self, _: Pid) {
        self.place.leave();
    }

    fn is_over(&self) -> bool {
        self.outbox.strong_count() == 0
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
