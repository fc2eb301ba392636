//! The processes of the keys.
//!
//! **Problem.** Messages for a key start its process, and an idle process ends. Of several first
//! messages one starts the process. A message that comes while the process leaves must neither be
//! lost in its mailbox nor reach the next process before earlier messages.
//!
//! **Rejected.** Ending when the mailbox is empty, in one act: the clean-up of the process, which
//! may ask other processes, would come afterwards. A lock across the send: its holder would run the
//! scheduler's code, and users' with it. Buffering messages here while a process leaves or starts:
//! a second mailbox, with limits and order of its own.
//!
//! **An entry** is a key with a process. Its slot has the key and the address of the latest process
//! of the key, and the PIDs of the key's live processes.
//!
//! 1. A sender takes a reference to the slot under the lock, sends, and gives the reference back.
//!    So the number of references tells how many sends are under way.
//! 2. A process that wants to leave marks its entry, under the lock, when the table's reference is
//!    the only reference. From then on the table leads no sender to the process. All messages sent
//!    to it by way of the table are in its mailbox, and no further message comes: the process takes
//!    the rest, and then ends.
//! 3. A sender that finds no slot, a marked slot, or the slot of an ended process, starts the next
//!    process. The next process claims the entry, which counts it, and gets the message. A claim
//!    fails when another process has been quicker.
//! 4. The next process begins when the entry counts no other process. Its mailbox keeps the
//!    messages sent meanwhile. The end of a process wakes the process that waits for it.
//! 5. The end of the last process takes the entry away.
//!
//! **Why no message is lost, and all are in order.** A sender's earlier message is in the mailbox
//! of the process to which the table led at the time of the send. A later message goes to the same
//! process, or to a later process. The later process begins when the earlier process has ended, and
//! the earlier process has taken all messages in its mailbox at its mark. They include the earlier
//! message, because its send was over.
//!
//! **Users' code** runs without a lock: a key is compared, cloned and dropped outside, so a search
//! takes a reference to a slot, compares, and looks again. Keys with the same hash are told from
//! each other by the numbers of their entries.

use ganger_proc_api::Pid;
use ganger_sched::Address;
use ganger_sched::internal::HashKey;
use ganger_sync::sync::{Mutex, MutexGuard, lock};
use ganger_sync::{CachePadded, shrink_after_burst};
use smallvec::{SmallVec, smallvec};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};
use std::mem;
use std::sync::Arc;

/// How many locks the entries share. A power of two.
const SHARDS: usize = 64;

/// A shard of at most this size never shrinks.
const KEPT: usize = 64;

/// The latest process of a key.
pub(crate) struct Slot<K, M> {
    pub(crate) key: K,
    pub(crate) address: Address<M>,
}

struct Entry<K, M> {
    /// Tells it from all other entries of its shard, past ones included.
    number: u64,
    slot: Arc<Slot<K, M>>,
    /// The processes of the key that have not ended.
    live: SmallVec<[Pid; 2]>,
    /// The latest process takes no more messages by way of the table.
    is_leaving: bool,
    /// The latest process has been asked to leave.
    is_asked: bool,
}

type Lock<K, M> = CachePadded<Mutex<Shard<K, M>>>;

/// The keys that have processes.
pub(crate) struct Table<K, M> {
    shards: Box<[Lock<K, M>]>,
    key: HashKey,
}

struct Shard<K, M> {
    /// By the hashes of their keys. Mostly each hash has a single entry.
    entries: HashMap<u64, SmallVec<[Entry<K, M>; 1]>, AsIs>,
    /// The number of the latest entry.
    last: u64,
}

/// Where the entry of a process is.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    hash: u64,
    number: u64,
}

struct Found<K, M> {
    place: Place,
    slot: Arc<Slot<K, M>>,
    is_leaving: bool,
    /// The asking process is a process of the key.
    is_of_asker: bool,
}

/// A process asks its own key.
#[derive(Debug)]
pub(crate) struct AsksItself;

impl<K, M> Table<K, M> {
    pub(crate) fn new() -> Self {
        let shard = || {
            CachePadded::new(Mutex::new(Shard {
                entries: HashMap::default(),
                last: 0,
            }))
        };
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            key: HashKey::random(),
        }
    }

    pub(crate) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.key.hash(key)
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard<K, M>> {
        // Not the bits by which a map finds its places.
        lock(&self.shards[(hash >> 32) as usize % SHARDS])
    }

    /// Searches the entry of the key.
    fn search<Q>(&self, hash: u64, key: &Q, asker: Option<Pid>) -> Option<Found<K, M>>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let mut others = SmallVec::<[u64; 1]>::new();
        loop {
            let found = self.shard(hash).other_than(hash, &others, asker)?;
            if found.slot.key.borrow() == key {
                return Some(found);
            }
            others.push(found.place.number);
        }
    }

    /// Gives the process of the key, for a send. A kept reference keeps the process from leaving.
    pub(crate) fn find<Q>(&self, hash: u64, key: &Q) -> Option<Arc<Slot<K, M>>>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let found = self.search(hash, key, None)?;
        (!found.is_leaving).then_some(found.slot)
    }

    /// Finds as [`find`](Self::find) does, for a question of the process `asker`, if a process
    /// asks. A process of the key must not wait for its key: for itself, or for the next process,
    /// which waits for its end.
    pub(crate) fn find_for<Q>(
        &self,
        hash: u64,
        key: &Q,
        asker: Option<Pid>,
    ) -> Result<Option<Arc<Slot<K, M>>>, AsksItself>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        match self.search(hash, key, asker) {
            Some(found) if found.is_of_asker => Err(AsksItself),
            Some(found) if !found.is_leaving => Ok(Some(found.slot)),
            _ => Ok(None),
        }
    }

    /// Makes a new process the latest of its key, unless the key has a process that takes messages.
    /// Returns the slot of the process before as well; the caller drops its key.
    #[allow(clippy::type_complexity, reason = "it is used once")]
    pub(crate) fn claim(
        &self,
        hash: u64,
        new: Arc<Slot<K, M>>,
    ) -> Option<(Place, Option<Arc<Slot<K, M>>>)>
    where
        K: Eq,
    {
        let pid = new.address.pid();
        let mut others = SmallVec::<[u64; 1]>::new();
        loop {
            let mut shard = self.shard(hash);
            let Some(found) = shard.other_than(hash, &others, None) else {
                shard.last += 1;
                let number = shard.last;
                shard.entries.entry(hash).or_default().push(Entry {
                    number,
                    slot: new,
                    live: smallvec![pid],
                    is_leaving: false,
                    is_asked: false,
                });
                return Some((Place { hash, number }, None));
            };
            drop(shard);
            let Found { place, slot, .. } = found;
            if slot.key != new.key {
                others.push(place.number);
                continue;
            }
            drop(slot);
            let mut shard = self.shard(hash);
            let Some(entry) = shard.entry(place) else {
                continue;
            };
            if !entry.is_leaving && !entry.slot.address.is_closed() {
                return None;
            }
            entry.live.push(pid);
            entry.is_leaving = false;
            entry.is_asked = false;
            let before = mem::replace(&mut entry.slot, new);
            return Some((place, Some(before)));
        }
    }

    /// Returns whether the process at this place, the latest, is the only process of its key.
    pub(crate) fn is_alone(&self, place: Place) -> bool {
        let mut shard = self.shard(place.hash);
        shard.entry(place).is_none_or(|entry| entry.live.len() == 1)
    }

    /// Marks the latest process, with this PID: it gets no more messages by way of the table.
    /// Returns `false`, and marks nothing, while a send to it is under way.
    pub(crate) fn leave(&self, place: Place, pid: Pid) -> bool {
        let mut shard = self.shard(place.hash);
        let Some(entry) = shard.entry(place) else {
            return true;
        };
        if entry.slot.address.pid() == pid {
            // Each sender releases its reference, and this check acquires it: the sent messages are
            // in the mailbox.
            if Arc::get_mut(&mut entry.slot).is_none() {
                return false;
            }
            entry.is_leaving = true;
        }
        true
    }

    /// Lets the process with this PID take messages by way of the table again, unless the key has a
    /// later process.
    pub(crate) fn stay(&self, place: Place, pid: Pid) -> bool {
        let mut shard = self.shard(place.hash);
        let entry = shard.entry(place).filter(|it| it.slot.address.pid() == pid);
        entry.map(|entry| entry.is_leaving = false).is_some()
    }

    /// Lets the next process take the place of the latest process, which has failed: messages sent
    /// to it are lost with it.
    pub(crate) fn give_up(&self, place: Place, pid: Pid) {
        if let Some(entry) = self.shard(place.hash).entry(place)
            && entry.slot.address.pid() == pid
        {
            entry.is_leaving = true;
        }
    }

    /// Notes that the process of the key is asked to leave, and returns the process; `Some(None)`
    /// when the process has been asked before.
    pub(crate) fn ask_to_leave<Q>(&self, hash: u64, key: &Q) -> Option<Option<Pid>>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let Found { place, slot, .. } = self.search(hash, key, None)?;
        let pid = slot.address.pid();
        drop(slot);
        let mut shard = self.shard(hash);
        let entry = shard.entry(place)?;
        if entry.slot.address.pid() != pid || entry.slot.address.is_closed() {
            return None;
        }
        let is_first = !entry.is_leaving && !mem::replace(&mut entry.is_asked, true);
        Some(is_first.then_some(pid))
    }

    /// Takes note that the process with this PID has ended.
    pub(crate) fn release(&self, place: Place, pid: Pid) {
        let mut shard = self.shard(place.hash);
        let Some(entry) = shard.entry(place) else {
            return;
        };
        entry.live.retain(|it| *it != pid);
        if !entry.live.is_empty() {
            // A process that has to wait for further processes goes on waiting.
            let waits = Arc::clone(&entry.slot);
            drop(shard);
            waits.address.untyped().waker().wake();
            return;
        }
        let entry = shard.remove(place);
        drop(shard);
        drop(entry);
    }

    pub(crate) fn len(&self) -> usize {
        let len = |shard: &Lock<K, M>| {
            let shard = lock(shard);
            shard.entries.values().map(SmallVec::len).sum::<usize>()
        };
        self.shards.iter().map(len).sum()
    }

    /// Returns the latest processes of all keys.
    pub(crate) fn slots(&self) -> Vec<Arc<Slot<K, M>>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let entries = shard.entries.values().flatten();
            all.extend(entries.map(|it| Arc::clone(&it.slot)));
        }
        all
    }
}

impl<K, M> Shard<K, M> {
    /// Gives the first entry with this hash whose number is not in `others`.
    fn other_than(&self, hash: u64, others: &[u64], asker: Option<Pid>) -> Option<Found<K, M>> {
        let entries = self.entries.get(&hash)?;
        let entry = entries.iter().find(|it| !others.contains(&it.number))?;
        let number = entry.number;
        Some(Found {
            place: Place { hash, number },
            slot: Arc::clone(&entry.slot),
            is_leaving: entry.is_leaving,
            is_of_asker: asker.is_some_and(|asker| entry.live.contains(&asker)),
        })
    }

    fn entry(&mut self, place: Place) -> Option<&mut Entry<K, M>> {
        let entries = self.entries.get_mut(&place.hash)?;
        entries.iter_mut().find(|it| it.number == place.number)
    }

    fn remove(&mut self, place: Place) -> Option<Entry<K, M>> {
        let entries = self.entries.get_mut(&place.hash)?;
        let index = entries.iter().position(|it| it.number == place.number)?;
        let entry = entries.swap_remove(index);
        if entries.is_empty() {
            self.entries.remove(&place.hash);
            shrink_after_burst(&mut self.entries, KEPT);
        }
        Some(entry)
    }
}

/// Takes the hash of a key, which was made with a secret, for the hash.
#[derive(Default)]
struct AsIs;

impl BuildHasher for AsIs {
    type Hasher = Same;

    fn build_hasher(&self) -> Same {
        Same(0)
    }
}

struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a hash is one number");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
