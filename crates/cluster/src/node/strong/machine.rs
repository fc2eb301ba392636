//! The names and locks of a node, without I/O and without a clock.
//!
//! **Protocol.** A *claim* is a name or a lock that a process of the node has, or wants.
//! 1. The node has a single lease, from the first claim on. A fifth of its time passes between two
//!    renewals.
//! 2. A name is an entry of the lease, created by its owner. A lock has an entry for each claim;
//!    the claim with the lowest revision is the owner. The revision is the fencing token.
//! 3. The lease is *good* until half of its time has passed since the last renewal that was
//!    answered, from the moment when that renewal was sent. When the lease is good no longer, all
//!    claims are lost, at once and for ever, and the next claim gets a new lease.
//! 4. A creation whose outcome is unknown is sent again: the value tells the owner of the entry.
//! 5. The first creation may still be carried out, when its claim is gone. So the key and the value
//!    are kept as long as the lease, and a late entry is deleted.
//!
//! **Proof sketch.** The store ends a lease its whole time after it has had the last renewal, so
//! not before twice as much time as the lease is good. As long as no clock runs twice as fast as
//! another, each owner has given up before the store gives its entries away. An entry that is
//! created by a late message is deleted, or is of a lease without renewals, and ends with
//! the lease. Revisions grow, so tokens do.

mod bury;
mod tick;

use super::cache::{Cache, LOCKS, NAMES};
use super::hold::Hold;
use crate::store::{LeaseId, Revision, StoreAnswer, StoreChange, StoreError, StoreOp};
use ganger_proc_api::Instant;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// The most claims of a node.
const MAX_CLAIMS: usize = 65_536;

/// The number of a claim, in its node.
pub(crate) type ClaimId = u64;

/// The lease, the claims and the store at a moment, for observers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Figures {
    /// For how long the lease is good, if the node has one.
    pub(crate) left: Option<Duration>,
    /// For how long a renewal makes it good.
    pub(crate) whole: Duration,
    pub(crate) names: usize,
    pub(crate) locks: usize,
    /// Claims that have no name or lock so far, or are being released.
    pub(crate) waiting: usize,
    /// Operations without an answer of the store.
    pub(crate) asked: usize,
    /// Whether the watch tells of changes.
    pub(crate) is_known: bool,
    /// When the watch was lost last.
    pub(crate) lost_at: Option<Instant>,
}

/// Why a claim has no name or lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The value of the owner's entry.
    Taken(Vec<u8>, Revision),
    Store(StoreError),
    /// The lease has ended meanwhile.
    Lapsed,
}

/// An act of the node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Todo {
    /// Ask the store, and give the answer back with the number.
    Ask(u64, StoreOp),
    /// The claim has its name or lock.
    Granted(ClaimId),
    Refused(ClaimId, Refused),
    /// The claim had its name or lock, and has it no more.
    Lost(ClaimId),
}

enum Purpose {
    Grant {
        sent: Instant,
    },
    Renew {
        lease: LeaseId,
        sent: Instant,
    },
    Revoke,
    Create(ClaimId),
    Delete(ClaimId),
    /// Of a late entry.
    Bury(Box<str>),
}

enum Lease {
    None,
    Granting,
    Held(Held),
}

struct Held {
    id: LeaseId,
    hold: Arc<Hold>,
    renew_at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// For a lease.
    Waiting,
    Creating,
    /// The outcome of the creation is unknown.
    Unsure,
    /// A lock, behind earlier claims.
    Queued(Revision),
    Owned(Revision),
    /// The deletion of the entry is under way.
    Releasing(Revision),
}

struct Claim {
    key: Box<str>,
    value: Vec<u8>,
    is_lock: bool,
    state: State,
    /// Unwanted meanwhile: to be released as soon as its revision is known.
    is_dropped: bool,
    /// The outcome of a creation was unknown once.
    was_unsure: bool,
}

pub(crate) struct Machine {
    ttl: Duration,
    lease: Lease,
    claims: BTreeMap<ClaimId, Claim>,
    /// The keys and values of gone claims whose entries may come late, as long as the lease lasts.
    late: BTreeSet<(Box<str>, Vec<u8>)>,
    pub(crate) cache: Cache,
    asked: BTreeMap<u64, Purpose>,
    number: u64,
    /// When claims with an unknown outcome, and failed deletions, are tried again.
    retry_at: Option<Instant>,
    /// How often a claim was lost that had its name or lock.
    losses: u64,
    /// When the watch of the store was lost last.
    lost_at: Option<Instant>,
    todo: Vec<Todo>,
}

impl Machine {
    pub(crate) fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            lease: Lease::None,
            claims: BTreeMap::new(),
            late: BTreeSet::new(),
            cache: Cache::default(),
            asked: BTreeMap::new(),
            number: 0,
            retry_at: None,
            losses: 0,
            lost_at: None,
            todo: Vec::new(),
        }
    }

    /// Takes the acts of the node that are due.
    pub(crate) fn todo(&mut self) -> Vec<Todo> {
        std::mem::take(&mut self.todo)
    }

    /// Returns whether acts are due.
    pub(crate) fn has_todo(&self) -> bool {
        !self.todo.is_empty()
    }

    fn half(&self) -> Duration {
        self.ttl / 2
    }

    /// Claims a name. No other claim of the node has the value.
    pub(crate) fn name(&mut self, id: ClaimId, name: &str, value: Vec<u8>, now: Instant) {
        self.claim(id, format!("{NAMES}{name}").into(), value, false, now);
    }

    /// Claims a lock. No other claim of the cluster has the nonce.
    pub(crate) fn lock(
        &mut self,
        id: ClaimId,
        name: &str,
        nonce: u128,
        value: Vec<u8>,
        now: Instant,
    ) {
        self.claim(
            id,
            format!("{LOCKS}{nonce:032x}/{name}").into(),
            value,
            true,
            now,
        );
    }

    fn claim(&mut self, id: ClaimId, key: Box<str>, value: Vec<u8>, is_lock: bool, now: Instant) {
        self.expire(now);
        if self.claims.len() >= MAX_CLAIMS {
            self.todo
                .push(Todo::Refused(id, Refused::Store(StoreError::Full)));
            return;
        }
        let claim = Claim {
            key,
            value,
            is_lock,
            state: State::Waiting,
            is_dropped: false,
            was_unsure: false,
        };
        self.claims.insert(id, claim);
        match &self.lease {
            Lease::None => {
                self.lease = Lease::Granting;
                let ttl = self.ttl;
                self.ask(Purpose::Grant { sent: now }, StoreOp::Grant { ttl });
            }
            Lease::Granting => {}
            Lease::Held(_) => self.create(id),
        }
    }

    fn ask(&mut self, purpose: Purpose, op: StoreOp) {
        self.number += 1;
        self.asked.insert(self.number, purpose);
        self.todo.push(Todo::Ask(self.number, op));
    }

    fn create(&mut self, id: ClaimId) {
        let Lease::Held(held) = &self.lease else {
            return;
        };
        let lease = held.id;
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.state = State::Creating;
            let op = StoreOp::create(claim.key.clone(), claim.value.clone());
            self.ask(Purpose::Create(id), op.with_lease(lease));
        }
    }

    fn delete(&mut self, id: ClaimId, revision: Revision) {
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.state = State::Releasing(revision);
            let op = StoreOp::delete(claim.key.clone(), revision);
            self.ask(Purpose::Delete(id), op);
        }
    }

    /// Releases an unwanted claim. Nothing is told of the claim from now on.
    pub(crate) fn release(&mut self, id: ClaimId, now: Instant) {
        self.expire(now);
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        claim.is_dropped = true;
        match claim.state {
            State::Waiting => drop(self.claims.remove(&id)),
            State::Creating | State::Unsure | State::Releasing(_) => {}
            State::Queued(revision) | State::Owned(revision) => self.delete(id, revision),
        }
    }

    /// Returns the token of a claim that has its name or lock now, and until when its lease is
    /// good.
    pub(crate) fn held(&mut self, id: ClaimId, now: Instant) -> Option<(Revision, Arc<Hold>)> {
        self.expire(now);
        let claim = self.claims.get(&id)?;
        match (&self.lease, claim.state) {
            (Lease::Held(held), State::Owned(token)) => Some((token, Arc::clone(&held.hold))),
            _ => None,
        }
    }

    /// Returns the claim of this node that owns the entry now, and its token.
    pub(crate) fn owned(&mut self, key: &str, now: Instant) -> Option<(ClaimId, Revision)> {
        self.expire(now);
        self.claims
            .iter()
            .find_map(|(id, claim)| match claim.state {
                State::Owned(token) if *claim.key == *key => Some((*id, token)),
                _ => None,
            })
    }

    /// Returns how often a claim was lost until now.
    pub(crate) fn losses(&mut self, now: Instant) -> u64 {
        self.expire(now);
        self.losses
    }

    /// Returns the figures of the lease, the claims and the store now. O(claims).
    pub(crate) fn figures(&mut self, now: Instant) -> Figures {
        self.expire(now);
        let left = match &self.lease {
            Lease::Held(held) => Some(held.hold.good_until().since(now)),
            Lease::None | Lease::Granting => None,
        };
        let (mut names, mut locks) = (0, 0);
        for claim in self.claims.values() {
            match (claim.state, claim.is_lock) {
                (State::Owned(_), true) => locks += 1,
                (State::Owned(_), false) => names += 1,
                _ => {}
            }
        }
        Figures {
            left,
            whole: self.half(),
            names,
            locks,
            waiting: self.claims.len() - names - locks,
            asked: self.asked.len(),
            is_known: self.cache.is_known(),
            lost_at: self.lost_at,
        }
    }

    /// Returns this node's own entries now.
    pub(crate) fn all_owned(&mut self, now: Instant) -> HashSet<Revision> {
        self.expire(now);
        let states = self.claims.values().map(|claim| claim.state);
        let owned = states.filter_map(|state| match state {
            State::Owned(revision) => Some(revision),
            _ => None,
        });
        owned.collect()
    }

    /// Returns whether the claim exists, in any state.
    pub(crate) fn has(&self, id: ClaimId) -> bool {
        self.claims.contains_key(&id)
    }

    /// Takes an answer of the store.
    pub(crate) fn answered(
        &mut self,
        number: u64,
        answer: Result<StoreAnswer, StoreError>,
        now: Instant,
    ) {
        self.expire(now);
        match self.asked.remove(&number) {
            Some(Purpose::Grant { sent }) => self.granted(sent, answer, now),
            Some(Purpose::Renew { lease, sent }) => self.renewed(lease, sent, answer, now),
            Some(Purpose::Create(id)) => self.created(id, answer, now),
            Some(Purpose::Delete(id)) => self.deleted(id, answer, now),
            // The next retry sees an entry still there.
            Some(Purpose::Bury(_)) => self.retry_soon(now),
            Some(Purpose::Revoke) | None => {}
        }
    }

    fn granted(&mut self, sent: Instant, answer: Result<StoreAnswer, StoreError>, now: Instant) {
        if !matches!(self.lease, Lease::Granting) {
            return;
        }
        let good = sent + self.half();
        let id = match answer {
            Ok(StoreAnswer::Lease(id)) if now < good => id,
            // Too late to be good. It ends by itself.
            Ok(_) => return self.no_lease(&StoreError::Unavailable("the store is slow".into())),
            Err(StoreError::Unknown) => {
                return self.no_lease(&StoreError::Unavailable("the answer is lost".into()));
            }
            Err(error) => return self.no_lease(&error),
        };
        self.lease = Lease::Held(Held {
            id,
            hold: Hold::until(good),
            renew_at: sent + self.ttl / 5,
        });
        let waiting: Vec<_> = self.claims.keys().copied().collect();
        for id in waiting {
            self.create(id);
        }
    }

    fn no_lease(&mut self, error: &StoreError) {
        self.lease = Lease::None;
        for (id, claim) in std::mem::take(&mut self.claims) {
            if !claim.is_dropped {
                self.todo
                    .push(Todo::Refused(id, Refused::Store(error.clone())));
            }
        }
    }

    fn renewed(
        &mut self,
        lease: LeaseId,
        sent: Instant,
        answer: Result<StoreAnswer, StoreError>,
        now: Instant,
    ) {
        let soon = now + self.ttl / 20;
        let good = sent + self.half();
        let Lease::Held(held) = &mut self.lease else {
            return;
        };
        if held.id != lease {
            return;
        }
        match answer {
            Ok(_) => held.hold.extend(good),
            Err(StoreError::NoLease) => self.lapse(),
            Err(_) => held.renew_at = held.renew_at.min(soon),
        }
    }

    fn created(&mut self, id: ClaimId, answer: Result<StoreAnswer, StoreError>, now: Instant) {
        let lease = match &self.lease {
            Lease::Held(held) => held.id,
            // The entry ends with its lease.
            _ => return,
        };
        let Some(claim) = self
            .claims
            .get_mut(&id)
            .filter(|it| it.state == State::Creating)
        else {
            return;
        };
        let revision = match answer {
            Ok(StoreAnswer::Written(revision)) => revision,
            Err(StoreError::Exists(entry))
                if entry.value == claim.value && entry.lease == Some(lease) =>
            {
                entry.revision
            }
            Err(StoreError::NoLease) => return self.lapse(),
            Ok(_) | Err(StoreError::Unknown) => {
                claim.state = State::Unsure;
                claim.was_unsure = true;
                return self.retry_soon(now);
            }
            Err(error) => {
                let is_dropped = claim.is_dropped;
                self.forget(id);
                if !is_dropped {
                    let why = match error {
                        StoreError::Exists(entry) => Refused::Taken(entry.value, entry.revision),
                        error => Refused::Store(error),
                    };
                    self.todo.push(Todo::Refused(id, why));
                }
                return;
            }
        };
        if claim.is_dropped {
            return self.delete(id, revision);
        }
        if claim.is_lock {
            claim.state = State::Queued(revision);
            self.look_at_locks();
        } else {
            claim.state = State::Owned(revision);
            self.todo.push(Todo::Granted(id));
        }
    }

    fn deleted(&mut self, id: ClaimId, answer: Result<StoreAnswer, StoreError>, now: Instant) {
        match answer {
            Err(StoreError::Unknown | StoreError::Unavailable(_) | StoreError::Full) => {
                self.retry_soon(now);
            }
            _ => drop(self.forget(id)),
        }
    }

    /// Forgets a claim, of which an entry may come late.
    fn forget(&mut self, id: ClaimId) -> Option<Claim> {
        let claim = self.claims.remove(&id)?;
        if claim.was_unsure && matches!(self.lease, Lease::Held(_)) {
            self.late.insert((claim.key.clone(), claim.value.clone()));
            self.bury(&claim.key);
            if self.late.len() > MAX_CLAIMS {
                // With another lease nothing comes late.
                self.lapse();
            }
        }
        Some(claim)
    }

    fn retry_soon(&mut self, now: Instant) {
        let at = now + self.ttl / 20;
        self.retry_at = Some(self.retry_at.map_or(at, |before| before.min(at)));
    }

    /// Takes a change of the store.
    pub(crate) fn changed(&mut self, change: StoreChange, now: Instant) {
        self.expire(now);
        if matches!(change, StoreChange::Lost) && self.cache.is_known() {
            self.lost_at = Some(now);
        }
        let put = match &change {
            StoreChange::Put(entry) if !self.late.is_empty() => Some(entry.key.clone()),
            _ => None,
        };
        let is_snapshot = matches!(change, StoreChange::Snapshot { .. });
        self.cache.changed(change);
        if let Some(key) = put {
            self.bury(&key);
        } else if is_snapshot {
            self.bury_all();
        }
        // An entry gone without its owner.
        let cache = &self.cache;
        let gone = self.claims.iter().filter(|(_, claim)| match claim.state {
            State::Owned(revision) | State::Queued(revision) => cache.is_gone(&claim.key, revision),
            _ => false,
        });
        let gone: Vec<_> = gone.map(|(id, _)| *id).collect();
        for id in gone {
            self.lose(id);
        }
        self.look_at_locks();
    }

    fn lose(&mut self, id: ClaimId) {
        let Some(claim) = self.forget(id).filter(|it| !it.is_dropped) else {
            return;
        };
        let is_owned = matches!(claim.state, State::Owned(_));
        self.losses += u64::from(is_owned);
        self.todo.push(if is_owned {
            Todo::Lost(id)
        } else {
            Todo::Refused(id, Refused::Lapsed)
        });
    }

    /// Gives the locks whose turn has come to their claims.
    fn look_at_locks(&mut self) {
        for (id, claim) in &mut self.claims {
            if let State::Queued(revision) = claim.state
                && self.cache.is_first(&claim.key, revision)
            {
                claim.state = State::Owned(revision);
                self.todo.push(Todo::Granted(*id));
            }
        }
    }

    /// Ends the lease, which is not good any more: all claims are lost.
    fn lapse(&mut self) {
        let Lease::Held(held) = std::mem::replace(&mut self.lease, Lease::None) else {
            return;
        };
        held.hold.end();
        self.late.clear();
        let claims: Vec<_> = self.claims.keys().copied().collect();
        for id in claims {
            self.lose(id);
        }
        // So the next owners wait less. Without an answer the lease ends by itself.
        self.ask(Purpose::Revoke, StoreOp::Revoke { lease: held.id });
    }

    fn expire(&mut self, now: Instant) {
        if let Lease::Held(held) = &self.lease
            && !held.hold.is_good(now)
        {
            self.lapse();
        }
    }

    /// Gives all up, as the node leaves. True: the store has answered.
    pub(crate) fn leave(&mut self, now: Instant) -> bool {
        self.expire(now);
        self.lapse();
        if let Lease::Granting = self.lease {
            self.no_lease(&StoreError::Unavailable("the node leaves".into()));
        }
        !self.asked.values().any(|it| matches!(it, Purpose::Revoke))
    }

    /// Returns when something is due next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let lease = match &self.lease {
            Lease::Held(held) => Some(held.renew_at.min(held.hold.good_until())),
            _ => None,
        };
        lease.into_iter().chain(self.retry_at).min()
    }
}
