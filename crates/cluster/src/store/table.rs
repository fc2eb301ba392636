//! The entries and leases of a store, without I/O and without a clock.
//!
//! Each operation has *effects*, which a log must keep. Effects of an earlier table, carried out
//! again in their order, give the same entries and the same numbers. Renewals have no effects:
//! after a restart each lease has its whole time again.

use super::api::{StoreAnswer, StoreError, StoreOp};
use super::change::StoreChange;
use super::entry::{Entry, LeaseId, Revision};
use ganger_proc_api::Instant;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

/// The most entries of a table.
const MAX_ENTRIES: usize = 100_000;

/// The most bytes in keys and values of a table, so that a snapshot fits a message.
const MAX_BYTES: usize = 24 << 20;

/// The most leases of a table.
const MAX_LEASES: usize = 10_000;

/// A change of a table, as a log keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Effect {
    Put(Entry),
    Gone {
        key: Box<str>,
        revision: Revision,
    },
    Granted {
        lease: LeaseId,
        ttl: Duration,
    },
    Ended {
        lease: LeaseId,
        revision: Revision,
    },
    /// No number up to this is used again.
    Used(Revision),
}

impl Effect {
    /// Returns the change as watchers see it.
    pub(crate) fn change(&self) -> Option<StoreChange> {
        match self {
            Self::Put(entry) => Some(StoreChange::Put(entry.clone())),
            Self::Gone { key, revision } => Some(StoreChange::Gone {
                key: key.clone(),
                revision: *revision,
            }),
            Self::Granted { .. } | Self::Ended { .. } | Self::Used(_) => None,
        }
    }

    /// Returns the number of the change.
    pub(crate) fn revision(&self) -> Revision {
        match self {
            Self::Put(entry) => entry.revision,
            Self::Gone { revision, .. } | Self::Ended { revision, .. } => *revision,
            Self::Granted { lease, .. } => Revision(lease.0),
            Self::Used(revision) => *revision,
        }
    }

    /// Returns about how many bytes the change has.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Put(entry) => entry.key.len() + entry.value.len() + 64,
            _ => self.key().map_or(0, str::len) + 64,
        }
    }

    /// Returns the key of the changed entry.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::Put(entry) => Some(&entry.key),
            Self::Gone { key, .. } => Some(key),
            Self::Granted { .. } | Self::Ended { .. } | Self::Used(_) => None,
        }
    }
}

struct Lease {
    ttl: Duration,
    ends: Instant,
    keys: BTreeSet<Box<str>>,
}

#[derive(Default)]
pub(crate) struct Table {
    /// The last number used, for a write, the end of an entry or a lease.
    used: u64,
    entries: BTreeMap<Box<str>, Entry>,
    leases: BTreeMap<LeaseId, Lease>,
    ends: BTreeSet<(Instant, LeaseId)>,
    bytes: usize,
}

type Answer = Result<StoreAnswer, StoreError>;

impl Table {
    /// Carries an operation out. Leases whose time has passed end before.
    pub(crate) fn apply(&mut self, op: StoreOp, now: Instant, effects: &mut Vec<Effect>) -> Answer {
        self.expire(now, effects);
        op.check()?;
        match op {
            StoreOp::Get { key } => Ok(StoreAnswer::Found(self.entries.get(&key).cloned())),
            StoreOp::Create { key, value, lease } => match self.entries.get(&key) {
                Some(entry) => Err(StoreError::Exists(entry.clone())),
                None => self.write(key, value, lease, effects),
            },
            StoreOp::Update {
                key,
                value,
                revision,
                lease,
            } => {
                self.expect(&key, revision)?;
                self.write(key, value, lease, effects)
            }
            StoreOp::Delete { key, revision } => {
                self.expect(&key, revision)?;
                let revision = self.delete(key, effects);
                Ok(StoreAnswer::Deleted(revision))
            }
            StoreOp::Grant { ttl } => self.grant(ttl, now, effects),
            StoreOp::Renew { lease } => self.renew(lease, now),
            StoreOp::Revoke { lease } => {
                self.end(lease, effects);
                Ok(StoreAnswer::Revoked)
            }
        }
    }

    /// Checks that the entry has this revision.
    fn expect(&self, key: &str, revision: Revision) -> Result<(), StoreError> {
        match self.entries.get(key) {
            Some(entry) if entry.revision == revision => Ok(()),
            other => Err(StoreError::Conflict(other.cloned())),
        }
    }

    fn next(&mut self) -> u64 {
        self.used += 1;
        self.used
    }

    fn write(
        &mut self,
        key: Box<str>,
        value: Vec<u8>,
        lease: Option<LeaseId>,
        effects: &mut Vec<Effect>,
    ) -> Answer {
        if lease.is_some_and(|lease| !self.leases.contains_key(&lease)) {
            return Err(StoreError::NoLease);
        }
        let before = self.entries.get(&key);
        let freed = before.map_or(0, |entry| entry.key.len() + entry.value.len());
        let has_room = before.is_some() || self.entries.len() < MAX_ENTRIES;
        if !has_room || self.bytes - freed + key.len() + value.len() > MAX_BYTES {
            return Err(StoreError::Full);
        }
        let revision = Revision(self.next());
        let entry = Entry {
            key,
            value,
            revision,
            lease,
        };
        let effect = Effect::Put(entry);
        self.replay(&effect, Instant::NEVER);
        effects.push(effect);
        Ok(StoreAnswer::Written(revision))
    }

    fn delete(&mut self, key: Box<str>, effects: &mut Vec<Effect>) -> Revision {
        let revision = Revision(self.next());
        let effect = Effect::Gone { key, revision };
        self.replay(&effect, Instant::NEVER);
        effects.push(effect);
        revision
    }

    fn grant(&mut self, ttl: Duration, now: Instant, effects: &mut Vec<Effect>) -> Answer {
        if self.leases.len() >= MAX_LEASES {
            return Err(StoreError::Full);
        }
        let lease = LeaseId(self.next());
        let effect = Effect::Granted { lease, ttl };
        self.replay(&effect, now);
        effects.push(effect);
        Ok(StoreAnswer::Lease(lease))
    }

    fn renew(&mut self, id: LeaseId, now: Instant) -> Answer {
        let lease = self.leases.get_mut(&id).ok_or(StoreError::NoLease)?;
        self.ends.remove(&(lease.ends, id));
        lease.ends = now + lease.ttl;
        self.ends.insert((lease.ends, id));
        Ok(StoreAnswer::Lease(id))
    }

    /// Ends a lease, with its entries.
    fn end(&mut self, id: LeaseId, effects: &mut Vec<Effect>) {
        let Some(lease) = self.leases.get_mut(&id) else {
            return;
        };
        for key in std::mem::take(&mut lease.keys) {
            self.delete(key, effects);
        }
        let revision = Revision(self.next());
        let effect = Effect::Ended {
            lease: id,
            revision,
        };
        self.replay(&effect, Instant::NEVER);
        effects.push(effect);
    }

    /// Ends the leases whose time has passed.
    pub(crate) fn expire(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        while let Some(&(ends, lease)) = self.ends.first()
            && ends <= now
        {
            self.end(lease, effects);
        }
    }

    /// Returns when the next lease ends.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.ends.first().map(|(ends, _)| *ends)
    }

    /// Gives each lease its whole time again, as after a restart.
    pub(crate) fn honour(&mut self, now: Instant) {
        self.ends.clear();
        for (id, lease) in &mut self.leases {
            lease.ends = now + lease.ttl;
            self.ends.insert((lease.ends, *id));
        }
    }

    /// Carries an effect out. A granted lease begins at `now`.
    pub(crate) fn replay(&mut self, effect: &Effect, now: Instant) {
        match effect {
            Effect::Put(entry) => {
                self.used = self.used.max(entry.revision.0);
                self.remove(&entry.key);
                self.bytes += entry.key.len() + entry.value.len();
                let lease = entry.lease.and_then(|lease| self.leases.get_mut(&lease));
                if let Some(lease) = lease {
                    lease.keys.insert(entry.key.clone());
                }
                self.entries.insert(entry.key.clone(), entry.clone());
            }
            Effect::Gone { key, revision } => {
                self.used = self.used.max(revision.0);
                self.remove(key);
            }
            Effect::Granted { lease, ttl } => {
                self.used = self.used.max(lease.0);
                let ends = now + *ttl;
                let new = Lease {
                    ttl: *ttl,
                    ends,
                    keys: BTreeSet::new(),
                };
                self.leases.insert(*lease, new);
                self.ends.insert((ends, *lease));
            }
            Effect::Ended { lease, revision } => {
                self.used = self.used.max(revision.0);
                if let Some(it) = self.leases.remove(lease) {
                    self.ends.remove(&(it.ends, *lease));
                }
            }
            Effect::Used(revision) => self.used = self.used.max(revision.0),
        }
    }

    fn remove(&mut self, key: &str) {
        let Some(entry) = self.entries.remove(key) else {
            return;
        };
        self.bytes -= entry.key.len() + entry.value.len();
        let lease = entry.lease.and_then(|lease| self.leases.get_mut(&lease));
        if let Some(lease) = lease {
            lease.keys.remove(key);
        }
    }

    /// Returns the last number used.
    pub(crate) fn revision(&self) -> Revision {
        Revision(self.used)
    }

    /// Returns the entries whose keys begin so.
    pub(crate) fn snapshot(&self, prefix: &str) -> StoreChange {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let from = self.entries.range::<str, _>(from);
        let entries = from.take_while(|(key, _)| key.starts_with(prefix));
        StoreChange::Snapshot {
            entries: entries.map(|(_, entry)| entry.clone()).collect(),
            revision: Revision(self.used),
        }
    }

    /// Returns effects to make an equal table of an empty table.
    pub(crate) fn effects(&self) -> impl Iterator<Item = Effect> {
        let leases = self.leases.iter().map(|(lease, it)| Effect::Granted {
            lease: *lease,
            ttl: it.ttl,
        });
        let entries = self.entries.values().cloned().map(Effect::Put);
        let used = Effect::Used(Revision(self.used));
        std::iter::once(used).chain(leases).chain(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn lease(answer: Answer) -> LeaseId {
        match answer {
            Ok(StoreAnswer::Lease(lease)) => lease,
            other => panic!("{other:?}"),
        }
    }

    fn revision(answer: Answer) -> u64 {
        match answer {
            Ok(StoreAnswer::Written(revision) | StoreAnswer::Deleted(revision)) => revision.0,
            other => panic!("{other:?}"),
        }
    }

    /// Carries a table's effects out again: the second table is equal, with the same numbers.
    #[test]
    fn effects_make_an_equal_table_and_no_number_goes_back() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut table = Table::default();
        let mut again = Table::default();
        let mut leases = vec![LeaseId(9)];
        let (mut now, mut last) = (0, 0);
        for _ in 0..5_000 {
            now += random.u64(0..80);
            let key = format!("k{}", random.u8(0..20));
            let revision = Revision(random.u64(table.used.saturating_sub(30)..=table.used));
            let op = match random.u8(0..10) {
                0..3 => StoreOp::create(key, "v").with_lease(*random.choice(&leases).unwrap()),
                3 => StoreOp::create(key, "v"),
                4 => StoreOp::update(key, "w", revision),
                5 => StoreOp::delete(key, revision),
                6 => StoreOp::Grant { ttl: MILLIS * 300 },
                7 => StoreOp::Revoke {
                    lease: *random.choice(&leases).unwrap(),
                },
                _ => StoreOp::Renew {
                    lease: *random.choice(&leases).unwrap(),
                },
            };
            let mut effects = Vec::new();
            let answer = table.apply(op, at(now), &mut effects);
            if let Ok(StoreAnswer::Lease(lease)) = answer {
                leases.push(lease);
            }
            for effect in effects {
                assert_eq!(effect.revision().0, last + 1);
                last = effect.revision().0;
                again.replay(&effect, at(now));
            }
            let mut compact = Table::default();
            for effect in table.effects() {
                compact.replay(&effect, at(now));
            }
            for other in [&again, &compact] {
                assert_eq!(other.snapshot(""), table.snapshot(""));
                assert!(other.leases.keys().eq(table.leases.keys()));
                assert_eq!(other.bytes, table.bytes);
                let keys = |it: &Table| it.leases.values().flat_map(|it| it.keys.clone()).count();
                assert_eq!(keys(other), keys(&table));
            }
        }
        assert!(leases.len() > 100 && table.entries.len() > 5);
    }

    const MILLIS: Duration = Duration::from_millis(1);

    #[test]
    fn entries_end_with_their_lease_and_a_write_moves_them() {
        let mut table = Table::default();
        let mut effects = Vec::new();
        let mut ask = |op, millis| table.apply(op, at(millis), &mut effects);
        let short = lease(ask(StoreOp::Grant { ttl: MILLIS * 100 }, 0));
        let long = lease(ask(StoreOp::Grant { ttl: MILLIS * 900 }, 0));
        let first = revision(ask(StoreOp::create("a", "1").with_lease(short), 0));
        revision(ask(StoreOp::create("b", "1").with_lease(short), 0));
        let moved = StoreOp::update("a", "2", Revision(first)).with_lease(long);
        let moved = revision(ask(moved, 99));
        let gone = ask(StoreOp::get("b"), 100);
        assert_eq!(gone, Ok(StoreAnswer::Found(None)));
        let late = ask(StoreOp::Renew { lease: short }, 100);
        assert_eq!(late, Err(StoreError::NoLease));
        let late = ask(StoreOp::create("c", "1").with_lease(short), 100);
        assert_eq!(late, Err(StoreError::NoLease));
        let Ok(StoreAnswer::Found(Some(entry))) = ask(StoreOp::get("a"), 899) else {
            panic!("the entry has moved to the other lease");
        };
        assert_eq!((entry.revision.0, entry.lease), (moved, Some(long)));
        let renewed = ask(StoreOp::Renew { lease: long }, 899);
        assert_eq!(renewed, Ok(StoreAnswer::Lease(long)));
        let kept = ask(StoreOp::get("a"), 1798);
        assert!(matches!(kept, Ok(StoreAnswer::Found(Some(_)))));
        assert_eq!(ask(StoreOp::get("a"), 1799), Ok(StoreAnswer::Found(None)));
    }

    #[test]
    fn a_full_table_refuses_and_takes_again_after_a_delete() {
        let mut table = Table::default();
        let mut effects = Vec::new();
        let big = vec![0; super::super::MAX_VALUE];
        let mut written = Vec::new();
        let refused = loop {
            let key = format!("k{}", written.len());
            match table.apply(StoreOp::create(key, big.clone()), at(0), &mut effects) {
                Ok(StoreAnswer::Written(revision)) => written.push(revision),
                other => break other,
            }
        };
        assert_eq!(refused, Err(StoreError::Full));
        assert!(written.len() > 700);
        let freed = StoreOp::delete("k0", written[0]);
        revision(table.apply(freed, at(0), &mut effects));
        revision(table.apply(StoreOp::create("z", big), at(0), &mut effects));
    }
}
