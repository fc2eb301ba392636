//! The state of a store at a message of its stream, without I/O and without a clock.

use ganger_cluster::{Entry, LeaseId, Revision, StoreChange, StoreOp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::{Duration, Instant};

/// The most entries of a store.
const MAX_ENTRIES: usize = 100_000;

/// The most bytes in keys and values of a store.
const MAX_BYTES: usize = 24 << 20;

/// The most leases of a store.
const MAX_LEASES: usize = 10_000;

/// Void writes whose numbers are kept for their writers.
const MAX_VOID: usize = 4096;

/// The low bits of a revision number the entries ended by the same message.
const INDEX_BITS: u32 = 20;

/// Returns the revision of a message, and of an entry that ends by the message.
pub(crate) fn revision(sequence: u64, index: u64) -> Revision {
    Revision((sequence << INDEX_BITS) | index)
}

/// Returns the message of a revision.
pub(crate) fn sequence(revision: Revision) -> u64 {
    revision.0 >> INDEX_BITS
}

/// A message of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    Put(Box<str>, Vec<u8>, Option<LeaseId>),
    Delete(Box<str>),
    /// A grant or a renewal.
    Held(LeaseId, Duration),
    Ended(LeaseId),
    /// A barrier, or a stranger's message.
    Other,
}

/// Whether a write has had its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Done,
    /// The lease, or the entry that was replaced, had ended before.
    Void,
    /// The mirror has begun anew meanwhile.
    Unsure,
}

pub(crate) struct Held {
    pub(crate) ttl: Duration,
    /// The last grant or renewal.
    pub(crate) sequence: u64,
    /// When the lease may be ended, unless it is renewed.
    pub(crate) due: Instant,
    keys: BTreeSet<Box<str>>,
}

/// The condition of a write: the last message at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Of the subject: what the subject of a free key ends with.
    Free,
    /// Of the subject.
    Subject(u64),
    /// Of the whole stream.
    Stream(u64),
}

#[derive(Default)]
pub(crate) struct Mirror {
    entries: BTreeMap<Box<str>, Entry>,
    pub(crate) leases: BTreeMap<LeaseId, Held>,
    bytes: usize,
    /// The last message seen.
    pub(crate) applied: u64,
    /// No verdict is known for messages up to this.
    since: u64,
    void: VecDeque<u64>,
}

impl Mirror {
    /// Builds the state at the message `at`, by the last message of each subject. Returns dead
    /// messages too: entries without their lease, and the marks of ended leases and deleted
    /// entries.
    pub(crate) fn of(
        last: BTreeMap<String, (u64, Record)>,
        at: u64,
        now: Instant,
    ) -> (Self, Vec<(String, u64)>) {
        let mut mirror = Self::default();
        let mut dead = Vec::new();
        for (sequence, record) in last.values() {
            if let Record::Held(..) = record {
                let _grants_are_no_changes = mirror.apply(*sequence, record.clone(), now);
            }
        }
        for (subject, (sequence, record)) in last {
            let is_dead = match &record {
                Record::Put(_, _, Some(lease)) => !mirror.leases.contains_key(lease),
                Record::Put(..) | Record::Held(..) => false,
                Record::Delete(_) | Record::Ended(_) | Record::Other => true,
            };
            if is_dead {
                dead.push((subject, sequence));
            } else if let Record::Put(..) = record {
                let _told_as_a_snapshot = mirror.apply(sequence, record, now);
            }
        }
        mirror.applied = at;
        mirror.since = at;
        (mirror, dead)
    }

    /// Takes the next message.
    pub(crate) fn apply(&mut self, at: u64, record: Record, now: Instant) -> Vec<StoreChange> {
        self.applied = at;
        match record {
            Record::Put(key, value, lease) => self.put(at, key, value, lease),
            Record::Delete(key) => match self.take(&key) {
                Some(_) => vec![gone(key, revision(at, 0))],
                None => {
                    self.note_void(at);
                    Vec::new()
                }
            },
            Record::Held(id, ttl) => {
                let held = self.leases.entry(id).or_insert_with(|| Held {
                    ttl,
                    sequence: at,
                    due: now,
                    keys: BTreeSet::new(),
                });
                held.ttl = ttl;
                held.sequence = at;
                held.due = now + ttl;
                Vec::new()
            }
            Record::Ended(id) => {
                let keys = self.leases.remove(&id).map(|held| held.keys);
                let keys = keys.unwrap_or_default().into_iter().zip(1..);
                let ended = keys.map(|(key, index)| {
                    self.take(&key);
                    gone(key, revision(at, index))
                });
                ended.collect()
            }
            Record::Other => Vec::new(),
        }
    }

    fn put(
        &mut self,
        at: u64,
        key: Box<str>,
        value: Vec<u8>,
        lease: Option<LeaseId>,
    ) -> Vec<StoreChange> {
        if lease.is_some_and(|lease| !self.leases.contains_key(&lease)) {
            self.note_void(at);
            // No writer of this crate replaces a living entry so.
            let before = self.take(&key);
            return before
                .map(|_| gone(key, revision(at, 0)))
                .into_iter()
                .collect();
        }
        self.take(&key);
        self.bytes += key.len() + value.len();
        if let Some(held) = lease.and_then(|lease| self.leases.get_mut(&lease)) {
            held.keys.insert(key.clone());
        }
        let entry = Entry {
            key: key.clone(),
            value,
            revision: revision(at, 0),
            lease,
        };
        self.entries.insert(key, entry.clone());
        vec![StoreChange::Put(entry)]
    }

    fn take(&mut self, key: &str) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.bytes -= entry.key.len() + entry.value.len();
        let lease = entry.lease.and_then(|lease| self.leases.get_mut(&lease));
        if let Some(held) = lease {
            held.keys.remove(key);
        }
        Some(entry)
    }

    fn note_void(&mut self, at: u64) {
        self.void.push_back(at);
        if self.void.len() > MAX_VOID
            && let Some(oldest) = self.void.pop_front()
        {
            self.since = self.since.max(oldest);
        }
    }

    /// Returns whether the write of this message, which has been applied, had its effect.
    pub(crate) fn verdict(&self, at: u64) -> Verdict {
        if at <= self.since || at > self.applied {
            Verdict::Unsure
        } else if self.void.contains(&at) {
            Verdict::Void
        } else {
            Verdict::Done
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Returns whether there is no room for the entry, or for another lease.
    pub(crate) fn is_full_for(&self, op: &StoreOp) -> bool {
        let (key, value) = match op {
            StoreOp::Create { key, value, .. } | StoreOp::Update { key, value, .. } => (key, value),
            StoreOp::Grant { .. } => return self.leases.len() >= MAX_LEASES,
            _ => return false,
        };
        let before = self.entries.get(key);
        let freed = before.map_or(0, |entry| entry.key.len() + entry.value.len());
        (before.is_none() && self.entries.len() >= MAX_ENTRIES)
            || self.bytes - freed + key.len() + value.len() > MAX_BYTES
    }

    /// Returns the entries of a lease, with their messages.
    pub(crate) fn entries_of(&self, lease: LeaseId) -> Vec<(Box<str>, u64)> {
        let keys = self.leases.get(&lease).map(|held| held.keys.iter());
        let entries = keys.into_iter().flatten();
        let entries = entries.filter_map(|key| self.entries.get(key));
        let entries = entries.map(|entry| (entry.key.clone(), sequence(entry.revision)));
        entries.collect()
    }

    /// Returns the entries whose keys begin so.
    pub(crate) fn snapshot(&self, prefix: &str) -> StoreChange {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let from = self.entries.range::<str, _>(from);
        let entries = from.take_while(|(key, _)| key.starts_with(prefix));
        StoreChange::Snapshot {
            entries: entries.map(|(_, entry)| entry.clone()).collect(),
            revision: revision(self.applied, (1 << INDEX_BITS) - 1),
        }
    }
}

fn gone(key: Box<str>, revision: Revision) -> StoreChange {
    StoreChange::Gone { key, revision }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(1);

    fn put(key: &str, lease: Option<u64>) -> Record {
        Record::Put(key.into(), b"x".to_vec(), lease.map(LeaseId))
    }

    fn revisions(changes: &[StoreChange]) -> Vec<u64> {
        let number = |change: &StoreChange| match change {
            StoreChange::Put(entry) => entry.revision.0,
            StoreChange::Gone { revision, .. } => revision.0,
            other => panic!("{other:?}"),
        };
        changes.iter().map(number).collect()
    }

    #[test]
    fn a_write_behind_the_end_of_its_lease_is_void() {
        let now = Instant::now();
        let mut mirror = Mirror::default();
        assert!(
            mirror
                .apply(1, Record::Held(LeaseId(7), TTL), now)
                .is_empty()
        );
        let mut seen = mirror.apply(2, put("a", Some(7)), now);
        seen.extend(mirror.apply(3, put("b", Some(7)), now));
        seen.extend(mirror.apply(4, put("kept", None), now));
        let ended = mirror.apply(5, Record::Ended(LeaseId(7)), now);
        assert_eq!(ended.len(), 2);
        seen.extend(ended);
        assert!(mirror.apply(6, put("a", Some(7)), now).is_empty());
        assert!(mirror.apply(7, Record::Delete("b".into()), now).is_empty());
        seen.extend(mirror.apply(8, put("b", None), now));
        assert!(revisions(&seen).is_sorted_by(|one, next| one < next));
        let verdicts = [3, 6, 7, 8].map(|at| mirror.verdict(at));
        use Verdict::{Done, Void};
        assert_eq!(verdicts, [Done, Void, Void, Done]);
        assert!(mirror.get("a").is_none() && mirror.get("kept").is_some());
    }

    /// Compares mirrors: the last messages of the subjects tell the same as all messages.
    #[test]
    fn the_last_messages_give_an_equal_mirror() {
        let now = Instant::now();
        let mut random = fastrand::Rng::with_seed(5);
        let mut mirror = Mirror::default();
        let mut last = BTreeMap::new();
        let mut ended = BTreeSet::new();
        let mut voids = 0;
        for at in 1..3000 {
            let lease = if at < 80 { at } else { random.u64(1..80) };
            let key = format!("k{}", random.u8(0..30));
            let is_moved = |it: &Entry| it.lease != Some(LeaseId(lease));
            // As writers do: no lease is renewed behind its end, and a living entry is not moved to
            // another lease without a look at the whole stream.
            let (subject, record) = match random.u8(0..20) {
                _ if at < 80 => (format!("l{lease}"), Record::Held(LeaseId(lease), TTL)),
                0..5 if !ended.contains(&lease) => {
                    (format!("l{lease}"), Record::Held(LeaseId(lease), TTL))
                }
                5 if at % 4 == 0 => {
                    ended.insert(lease);
                    (format!("l{lease}"), Record::Ended(LeaseId(lease)))
                }
                6..9 => (key.clone(), Record::Delete(key.into())),
                9 => (key.clone(), put(&key, None)),
                _ if mirror.get(&key).is_some_and(is_moved) => ("b".to_owned(), Record::Other),
                _ => (key.clone(), put(&key, Some(lease))),
            };
            last.insert(subject, (at, record.clone()));
            mirror.apply(at, record, now);
            voids += usize::from(mirror.verdict(at) == Verdict::Void);
            let (again, _) = Mirror::of(last.clone(), at, now);
            assert_eq!(again.snapshot(""), mirror.snapshot(""));
            assert_eq!(again.bytes, mirror.bytes);
            assert!(again.leases.keys().eq(mirror.leases.keys()));
        }
        assert!(ended.len() > 10 && voids > 100);
    }
}
