//! The members of a scope, under its lock, and the holds that keep it.

use super::carrier::{GroupCarrier, MAX_JOINS};
use super::join_error::{JoinError, JoinErrorKind};
use super::outbox::{GroupChange, Outbox};
use super::snapshot::{Member, Snapshot, mixed, text_hash};
use crate::shrink::shrink;
use ganger_proc_api::{NodeName, Pid};
use ganger_sched::internal::HashKey;
use ganger_sched::{Address, ExitAction};
use ganger_sync::sync::{Mutex, MutexGuard, lock};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

type ByName = HashMap<Arc<str>, Weak<Scope>>;

/// The scopes of a scheduler, or of its node in a cluster, that are in use, by their names.
#[derive(Default)]
pub(super) struct Scopes(pub(super) Mutex<ByName>);

/// Lives while it has members, monitors, or values of its users.
pub(super) struct Scope {
    pub(super) name: Arc<str>,
    pub(super) scopes: Weak<Scopes>,
    /// Hashes the keys that lead to members.
    pub(super) key: HashKey,
    /// The node of the scheduler.
    pub(super) node: Option<NodeName>,
    /// Of a scope of a cluster.
    pub(super) carrier: Option<Arc<dyn GroupCarrier>>,
    pub(super) inner: Mutex<Inner>,
}

/// Keeps a scope for an exit action, until it is released.
pub(super) struct Hold(Mutex<Option<Arc<Scope>>>);

impl Hold {
    pub(super) fn new(scope: &Arc<Scope>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(Arc::clone(scope)))))
    }

    /// Releases the scope, which the caller drops without a lock.
    #[must_use]
    pub(super) fn release(&self) -> Option<Arc<Scope>> {
        lock(&self.0).take()
    }

    fn scope(&self) -> Option<Arc<Scope>> {
        lock(&self.0).clone()
    }

    pub(super) fn is_released(&self) -> bool {
        lock(&self.0).is_none()
    }
}

/// A monitor, whose process has an exit action for it.
pub(super) struct Monitor {
    pub(super) outbox: Arc<Outbox>,
    pub(super) hold: Weak<Hold>,
}

impl Monitor {
    pub(super) fn new(outbox: &Arc<Outbox>, hold: &Arc<Hold>) -> Self {
        Self {
            outbox: Arc::clone(outbox),
            hold: Arc::downgrade(hold),
        }
    }
}

pub(super) struct Join {
    pub(super) process: Address,
    /// The first join of the process in this group, which leaves last.
    pub(super) is_first: bool,
}

#[derive(Default)]
pub(super) struct Members {
    /// The joins, in their order.
    pub(super) joins: BTreeMap<u64, Join>,
    pub(super) monitors: BTreeMap<u64, Monitor>,
    /// Each member once. None after a change.
    pub(super) snapshot: Option<Arc<Snapshot>>,
    /// Whose turn it is.
    pub(super) turn: usize,
}

impl Members {
    pub(super) fn pids(&self) -> Vec<Pid> {
        self.joins.values().map(|it| it.process.pid()).collect()
    }

    /// Returns each member once. `own` is the node of the own members, in a scope of a cluster.
    pub(super) fn snapshot(&mut self, own: Option<NodeName>) -> Arc<Snapshot> {
        let joins = &self.joins;
        let snapshot = self.snapshot.get_or_insert_with(|| {
            let members = joins.values().filter(|it| it.is_first);
            let members = members.map(|it| Member::new(&it.process, own));
            Arc::new(Snapshot::new(members.collect(), own.is_some()))
        });
        Arc::clone(snapshot)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.joins.is_empty() && self.monitors.is_empty()
    }
}

#[derive(Default)]
pub(super) struct Inner {
    pub(super) groups: BTreeMap<Arc<str>, Members>,
    joined: HashMap<Pid, Joined>,
    /// Monitors of the whole scope.
    pub(super) monitors: BTreeMap<u64, Monitor>,
    /// The number of the last join or monitor.
    last: u64,
}

/// A process that has joined, with its exit action.
struct Joined {
    number: u64,
    process: Address,
    hold: Weak<Hold>,
    /// The numbers of its joins of each group.
    groups: BTreeMap<Arc<str>, Vec<u64>>,
    /// The joins among them by the present incarnation's own calls, if the process may be restarted
    /// in place.
    own: Vec<(Arc<str>, u64)>,
    /// The incarnation has an exit action for these.
    has_own: bool,
}

/// The work to be done without the lock.
#[derive(Default)]
struct Later {
    outboxes: Vec<Arc<Outbox>>,
    /// The destructor of an address may be another's code.
    gone: Vec<Address>,
    snapshots: Vec<Arc<Snapshot>>,
    /// The own processes whose joins of a group have changed, for the carrier.
    changed: Vec<(Arc<str>, Pid)>,
    /// The last user of a scope drops it.
    scopes: Vec<Option<Arc<Scope>>>,
}

impl Later {
    fn carry_out(self) {
        for outbox in &self.outboxes {
            outbox.empty();
        }
    }
}

impl Inner {
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Notes a change of a group for its monitors.
    fn tell(&mut self, group: &Arc<str>, pid: Pid, is_join: bool, later: &mut Later) {
        if pid.node().is_none()
            && later
                .changed
                .last()
                .is_none_or(|it| *it != (Arc::clone(group), pid))
        {
            later.changed.push((Arc::clone(group), pid));
        }
        let members = self.groups.get_mut(group);
        let of_group = members.map(|it| {
            later.snapshots.extend(it.snapshot.take());
            &it.monitors
        });
        let of_group = of_group.into_iter().flat_map(BTreeMap::values);
        for Monitor { outbox, .. } in of_group.chain(self.monitors.values()) {
            let group = Arc::clone(group);
            outbox.put(GroupChange {
                group,
                pid,
                is_join,
            });
            later.outboxes.push(Arc::clone(outbox));
        }
    }

    /// Takes this join of the process out of the group.
    fn take_join(&mut self, group: &Arc<str>, pid: Pid, join: u64, later: &mut Later) {
        if let Some(members) = self.groups.get_mut(group) {
            let join = members.joins.remove(&join);
            later.gone.extend(join.map(|it| it.process));
        }
        self.tell(group, pid, false, later);
        self.forget_if_empty(group);
    }

    pub(super) fn forget_if_empty(&mut self, group: &Arc<str>) {
        if self.groups.get(group).is_some_and(Members::is_empty) {
            self.groups.remove(group);
        }
    }

    /// Returns the number of times that the process is in the group.
    fn joins(&self, group: &Arc<str>, pid: Pid) -> usize {
        let joined = self.joined.get(&pid);
        let joins = joined.and_then(|it| it.groups.get(group));
        joins.map_or(0, Vec::len)
    }

    /// Has a process of another node join once more. The process has no exit action here.
    fn put_join(&mut self, group: &Arc<str>, process: &Address, later: &mut Later) {
        let (pid, number) = (process.pid(), self.next());
        let joined = self.joined.entry(pid).or_insert_with(|| Joined {
            number,
            process: process.clone(),
            hold: Weak::new(),
            groups: BTreeMap::new(),
            own: Vec::new(),
            has_own: false,
        });
        let joins = joined.groups.entry(Arc::clone(group)).or_default();
        joins.push(number);
        let is_first = joins.len() == 1;
        let members = self.groups.entry(Arc::clone(group)).or_default();
        let process = process.clone();
        members.joins.insert(number, Join { process, is_first });
        self.tell(group, pid, true, later);
    }

    /// Takes the process's last join of the group. False: there is none.
    fn take_last(&mut self, group: &Arc<str>, pid: Pid, later: &mut Later) -> bool {
        let Some(joined) = self.joined.get_mut(&pid) else {
            return false;
        };
        let Some(joins) = joined.groups.get_mut(group) else {
            return false;
        };
        let last = joins.pop();
        if joins.is_empty() {
            joined.groups.remove(group);
        }
        let is_out = joined.groups.is_empty();
        let Some(last) = last else { return false };
        joined.own.retain(|it| it.1 != last);
        self.take_join(group, pid, last, later);
        if is_out {
            self.forget_process(pid, later);
        }
        true
    }

    /// Removes the process from all groups.
    fn take_all(&mut self, pid: Pid, number: u64, later: &mut Later) {
        if self.joined.get(&pid).is_none_or(|it| it.number != number) {
            return;
        }
        let groups = self.forget_process(pid, later);
        for (group, joins) in groups {
            for join in joins.into_iter().rev() {
                self.take_join(&group, pid, join, later);
            }
        }
    }

    /// Has the incarnation of the process leave the groups that it has joined itself.
    fn take_own(&mut self, pid: Pid, number: u64, later: &mut Later) {
        let joined = self.joined.get_mut(&pid);
        let Some(joined) = joined.filter(|it| it.number == number) else {
            return;
        };
        let own = std::mem::take(&mut joined.own);
        joined.has_own = false;
        for (group, join) in own.into_iter().rev() {
            let Some(joined) = self.joined.get_mut(&pid) else {
                return;
            };
            let Some(joins) = joined.groups.get_mut(&group) else {
                continue;
            };
            joins.retain(|it| *it != join);
            let first = joins.first().copied();
            if first.is_none() {
                joined.groups.remove(&group);
            }
            let is_out = joined.groups.is_empty();
            self.take_join(&group, pid, join, later);
            let members = self.groups.get_mut(&group);
            if let Some(members) = members
                && let Some(first) = first.and_then(|it| members.joins.get_mut(&it))
            {
                first.is_first = true;
            }
            if is_out {
                self.forget_process(pid, later);
            }
        }
    }

    /// Forgets a process that has left, or leaves, and whose exit action is over.
    fn forget_process(&mut self, pid: Pid, later: &mut Later) -> BTreeMap<Arc<str>, Vec<u64>> {
        let Some(joined) = self.joined.remove(&pid) else {
            return BTreeMap::new();
        };
        shrink(&mut self.joined);
        let hold = joined.hold.upgrade();
        later.scopes.extend(hold.map(|it| it.release()));
        later.gone.push(joined.process);
        joined.groups
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some(scopes) = self.scopes.upgrade() {
            let mut all = lock(&scopes.0);
            // Another scope may have its name by now.
            if all.get(&self.name).is_some_and(|it| it.strong_count() == 0) {
                all.remove(&self.name);
                shrink(&mut all);
            }
        }
    }
}

impl Scope {
    pub(super) fn join(
        self: &Arc<Self>,
        group: &Arc<str>,
        process: &Address,
    ) -> Result<(), JoinError> {
        let pid = process.pid();
        let refuse = |kind| Err(JoinError { pid, kind });
        if let Some(carrier) = &self.carrier {
            carrier.admits(&self.name, group, pid).or_else(refuse)?;
        }
        if process.is_closed() {
            return refuse(JoinErrorKind::Ended);
        }
        let is_own = process.is_own() && process.incarnation_end().is_some();
        let mut later = Later::default();
        let mut inner = lock(&self.inner);
        // An entry of an earlier process with the PID.
        if let Some(earlier) = inner.joined.get(&pid)
            && !earlier.process.is_same(process)
        {
            let number = earlier.number;
            inner.take_all(pid, number, &mut later);
        }
        if self.carrier.is_some() && inner.joins(group, pid) >= MAX_JOINS {
            return refuse(JoinErrorKind::Full);
        }
        let number = inner.next();
        let mut new = None;
        let joined = inner.joined.entry(pid).or_insert_with(|| {
            let hold = new.insert(Hold::new(self));
            Joined {
                number,
                process: process.clone(),
                hold: Arc::downgrade(hold),
                groups: BTreeMap::new(),
                own: Vec::new(),
                has_own: false,
            }
        });
        let first_own = is_own && !joined.has_own;
        if is_own {
            joined.has_own = true;
            joined.own.push((Arc::clone(group), number));
        }
        let (hold, joined_as) = (Weak::clone(&joined.hold), joined.number);
        let joins = joined.groups.entry(Arc::clone(group)).or_default();
        joins.push(number);
        let is_first = joins.len() == 1;
        let members = inner.groups.entry(Arc::clone(group)).or_default();
        let join = Join {
            process: process.clone(),
            is_first,
        };
        members.joins.insert(number, join);
        inner.tell(group, pid, true, &mut later);
        self.finish(inner, later);
        let mut actions: Vec<Box<dyn ExitAction>> = Vec::new();
        if let Some(hold) = new {
            actions.push(Box::new(LeaveAll { hold, number }));
        }
        if first_own {
            let number = joined_as;
            actions.push(Box::new(LeaveOwn { hold, number }));
        }
        for action in actions {
            if process.add_exit_action(action).is_err() {
                self.leave_all(pid, joined_as);
                return refuse(JoinErrorKind::Ended);
            }
        }
        Ok(())
    }

    pub(super) fn leave(&self, group: &Arc<str>, pid: Pid) -> bool {
        if pid.node().is_some() && pid.node() != self.node {
            return false;
        }
        // As it has joined.
        let pid = pid.with_node(None);
        let mut later = Later::default();
        let mut inner = lock(&self.inner);
        let has_left = inner.take_last(group, pid, &mut later);
        self.finish(inner, later);
        has_left
    }

    /// Notes that a process of another node is in the group this often from now on.
    pub(super) fn arrived(&self, group: &Arc<str>, process: &Address, joins: usize) {
        let pid = process.pid();
        let mut later = Later::default();
        let mut inner = lock(&self.inner);
        let before = inner.joins(group, pid);
        for _ in before..joins {
            inner.put_join(group, process, &mut later);
        }
        for _ in joins..before {
            inner.take_last(group, pid, &mut later);
        }
        self.finish(inner, later);
    }

    /// Tells the carrier of the changes, and lets the lock go.
    fn finish(&self, inner: MutexGuard<'_, Inner>, later: Later) {
        let changed = self.carrier.as_ref().filter(|_| !later.changed.is_empty());
        if let Some(carrier) = changed {
            for (group, pid) in &later.changed {
                carrier.joined(&self.name, group, *pid, inner.joins(group, *pid));
            }
        }
        drop(inner);
        later.carry_out();
        if let Some(carrier) = changed {
            carrier.changed();
        }
    }

    /// Returns the node of the own members, in a scope of a cluster.
    pub(super) fn carried_from(&self) -> Option<NodeName> {
        self.carrier.as_ref().and(self.node)
    }

    /// Returns the hash of a key for a group: alike on all nodes of a cluster.
    pub(super) fn key_of(&self, group: &str, key: u64) -> u64 {
        match &self.carrier {
            None => self.key.hash((group, key)),
            Some(carrier) => {
                let scope = text_hash(carrier.key(), &self.name);
                mixed(text_hash(scope, group) ^ key)
            }
        }
    }

    fn leave_all(&self, pid: Pid, number: u64) {
        let mut later = Later::default();
        let mut inner = lock(&self.inner);
        inner.take_all(pid, number, &mut later);
        self.finish(inner, later);
    }

    fn leave_own(&self, pid: Pid, number: u64) {
        let mut later = Later::default();
        let mut inner = lock(&self.inner);
        inner.take_own(pid, number, &mut later);
        self.finish(inner, later);
    }

    pub(super) fn next_turn(&self, group: &Arc<str>) -> usize {
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
    hold: Arc<Hold>,
    number: u64,
}

impl ExitAction for LeaveAll {
    fn release(&mut self, process: Pid) {
        if let Some(scope) = self.hold.release() {
            scope.leave_all(process, self.number);
        }
    }

    fn is_over(&self) -> bool {
        self.hold.is_released()
    }
}

/// The action at the end of an incarnation that has joined by its own calls.
struct LeaveOwn {
    hold: Weak<Hold>,
    number: u64,
}

impl ExitAction for LeaveOwn {
    fn release(&mut self, process: Pid) {
        let hold = self.hold.upgrade();
        if let Some(scope) = hold.and_then(|it| it.scope()) {
            scope.leave_own(process, self.number);
        }
    }

    fn ends_with_incarnation(&self) -> bool {
        true
    }

    fn is_over(&self) -> bool {
        self.hold.upgrade().is_none_or(|it| it.is_released())
    }
}
