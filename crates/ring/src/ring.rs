//! The ring: a writer overwrites, and readers find out how much was overwritten under them.
//!
//! **Problem.** A flight recorder is always on: its writer is a worker, which must not wait for a
//! reader, nor pay for absent readers. A reader copies megabytes, and the writer may pass it
//! meanwhile.
//!
//! **Rejected.**
//! - *A lock, or a flag to stop the writer during a copy*: a copy of 16 MiB takes milliseconds.
//! - *A sequence number in each record* (Linux' `perf` and most seqlocks): two more stores a
//!   record, and a word of memory. Here the count of records serves all of them.
//! - *Two halves in turns* (in part Go's flight recorder): each change leaves half of the memory
//!   empty.
//!
//! **The writer.** Records have consecutive numbers, from 0. The slot of a record is its number
//! modulo the number of slots. `next` is the number of the next record.
//! 1. Fence (release).
//! 2. Store the words of record `next`, over the words of record `next - slots`.
//! 3. Store `next + 1` (release).
//!
//! **A reader.**
//! 1. Load `next` (acquire): all records below it are written.
//! 2. Copy the newest `slots` of them.
//! 3. Fence (acquire), and load `next` again. A record is whole if its number is above
//!    `next - slots`: the writer may be in the middle of record `next`, in the slot of record
//!    `next - slots`. Drop all records up to there.
//!
//! **Proof sketch.** A reader with a word of record `n` in its copy sees, by the fences, all stores
//! of the writer before record `n`: the second load of `next` gives `n` at least. So the reader
//! drops record `n - slots`, whose slot held the word. The reader keeps a record only with all its
//! words, by the first load, and with no word of a later record. The protocol is a seqlock with
//! one counter for all records: H. Boehm, Can seqlocks get along with programming language memory
//! models? (2012).

use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicU64, Ordering, fence};
use ganger_sync::sync::Arc;
use std::cell::Cell;
use std::fmt;

/// The fewest slots: the writer is in the middle of the first, and readers copy the second.
const LEAST_SLOTS: usize = 2;

/// Makes a ring of records of `WORDS` words each, in at most `bytes` bytes.
///
/// The number of slots is the largest power of two whose records fit, and at least two. A snapshot
/// has at most one record fewer, because the writer may be about to overwrite its slot. Takes the
/// whole memory at once, and writes zeros to it. O(bytes).
///
/// ```
/// let (_, reader) = ganger_ring::ring::<4>(16 << 20);
/// assert_eq!(reader.slots(), 1 << 19);
/// ```
///
/// # Panics
/// If `WORDS` is 0, or with "capacity overflow" beyond the address space.
#[must_use]
pub fn ring<const WORDS: usize>(bytes: usize) -> (Writer<WORDS>, Reader<WORDS>) {
    assert!(WORDS > 0, "a record has one word at least");
    let fit = (bytes / (WORDS * size_of::<u64>())).max(LEAST_SLOTS);
    let slots = 1 << fit.ilog2();
    let empty = || std::array::from_fn(|_| AtomicU64::new(0));
    let ring = Arc::new(Ring {
        next: CachePadded::new(AtomicU64::new(0)),
        slots: std::iter::repeat_with(empty).take(slots).collect(),
    });
    let writer = Writer {
        ring: Arc::clone(&ring),
        next: Cell::new(0),
    };
    (writer, Reader { ring })
}

/// | field | the writer | readers |
/// |---|---|---|
/// | `next` | stores | load |
/// | `slots` | stores the words of the slot of record `next` | load all |
struct Ring<const WORDS: usize> {
    /// The number of the next record: how many have been written.
    next: CachePadded<AtomicU64>,
    /// A power of two of them.
    slots: Box<[[AtomicU64; WORDS]]>,
}

impl<const WORDS: usize> Ring<WORDS> {
    /// Returns the slot of the record with this number.
    #[inline]
    fn slot(&self, number: u64) -> &[AtomicU64; WORDS] {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the number of slots is a power of two, so that the lower bits say the slot"
        )]
        let slot = number as usize & (self.slots.len() - 1);
        &self.slots[slot]
    }

    /// Writes the record with that number: the next.
    #[inline]
    fn write(&self, number: u64, record: [u64; WORDS]) {
        // Ordering: Release pairs with the Acquire fence in `snapshot`: a reader with one of
        // the words below sees this record's number, or a later number, in `next`.
        fence(Ordering::Release);
        for (word, value) in self.slot(number).iter().zip(record) {
            // Ordering: Relaxed, because the fence above and the store below publish the words.
            word.store(value, Ordering::Relaxed);
        }
        // Ordering: Release pairs with the Acquire load in `snapshot`: a reader of the number
        // sees all words of the records before it.
        self.next.store(number + 1, Ordering::Release);
    }
}

/// The writing end. A writer may move to another thread, and belongs to a single thread at a time.
///
/// ```compile_fail
/// fn shared<T: Sync>(_: T) {}
/// shared(ganger_ring::ring::<4>(64).0);
/// ```
pub struct Writer<const WORDS: usize> {
    ring: Arc<Ring<WORDS>>,
    /// The value of `Ring::next`, without a load. Not `Sync`, to keep a second writer out.
    next: Cell<u64>,
}

impl<const WORDS: usize> Writer<WORDS> {
    /// Writes a record over the oldest. Never waits, and takes no memory. O(`WORDS`).
    #[inline]
    pub fn push(&self, record: [u64; WORDS]) {
        let number = self.next.get();
        self.ring.write(number, record);
        self.next.set(number + 1);
    }

    /// Returns another reader of the same ring.
    #[must_use]
    pub fn reader(&self) -> Reader<WORDS> {
        Reader {
            ring: Arc::clone(&self.ring),
        }
    }
}

/// The writing end of a place that threads have one after another: [`Writer::share`].
///
/// Each thread must see the earlier acts of the last thread in the place: the last thread has
/// started this thread, say, or has released a lock that this thread has taken. Threads that write
/// at once mix up their records: readers see records that no thread has written, and count wrongly.
/// No memory is at risk.
///
/// ```
/// let writer = ganger_ring::ring::<2>(64).0.share();
/// std::thread::scope(|scope| scope.spawn(|| writer.push([1, 2])).join());
/// writer.push([3, 4]);
/// assert_eq!(writer.reader().snapshot().records, [[1, 2], [3, 4]]);
/// ```
pub struct SharedWriter<const WORDS: usize>(Reader<WORDS>);

impl<const WORDS: usize> Writer<WORDS> {
    /// Lets threads write one after another.
    #[must_use]
    pub fn share(self) -> SharedWriter<WORDS> {
        SharedWriter(self.reader())
    }
}

impl<const WORDS: usize> SharedWriter<WORDS> {
    /// Pushes as [`Writer::push`] does. O(`WORDS`).
    #[inline]
    pub fn push(&self, record: [u64; WORDS]) {
        let ring = &*self.0.ring;
        // Ordering: Relaxed: the writer is this thread, or a thread whose end this thread has seen.
        ring.write(ring.next.load(Ordering::Relaxed), record);
    }

    /// Returns a reader of the ring.
    #[must_use]
    pub fn reader(&self) -> Reader<WORDS> {
        self.0.clone()
    }
}

impl<const WORDS: usize> fmt::Debug for SharedWriter<WORDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f.debug_struct("SharedWriter")
            .field("written", &self.0.written()))
        .finish_non_exhaustive()
    }
}

impl<const WORDS: usize> fmt::Debug for Writer<WORDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f.debug_struct("Writer").field("written", &self.next.get())).finish_non_exhaustive()
    }
}

/// The copying end. Any number of threads may have readers, or share them.
pub struct Reader<const WORDS: usize> {
    ring: Arc<Ring<WORDS>>,
}

/// The newest records of a ring at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot<const WORDS: usize> {
    /// How many records have been written before the first of these, and overwritten.
    pub lost: u64,
    /// Whole records, the oldest first, without a gap.
    pub records: Vec<[u64; WORDS]>,
}

impl<const WORDS: usize> Reader<WORDS> {
    /// Copies the newest records. Never waits, nor does the writer. O([`slots`](Self::slots)).
    ///
    /// Records that the writer overwrites during the copy are lost. A writer that overtakes the
    /// copy by a whole round leaves an empty snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<WORDS> {
        let slots = self.ring.slots.len() as u64;
        // Ordering: Acquire pairs with the Release store in `write`: the words of all records below
        // are visible.
        let next = self.ring.next.load(Ordering::Acquire);
        let first = next.saturating_sub(slots);
        let copy = |number| {
            let slot = self.ring.slot(number);
            // Ordering: Relaxed, because the fence below orders the loads before the second look.
            std::array::from_fn(|word| slot[word].load(Ordering::Relaxed))
        };
        let mut records: Vec<[u64; WORDS]> = (first..next).map(copy).collect();
        // Ordering: Acquire pairs with the Release fence in `write`: if a load above gave a
        // word of a later record, the load below gives the number of this record at least.
        fence(Ordering::Acquire);
        // Ordering: Relaxed, because the fence above orders it.
        let now = self.ring.next.load(Ordering::Relaxed);
        let whole = (now + 1).saturating_sub(slots).clamp(first, next);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is at most the number of records in the list"
        )]
        records.drain(..(whole - first) as usize);
        Snapshot {
            lost: whole,
            records,
        }
    }

    /// Returns the number of records written so far, lost records too.
    #[must_use]
    pub fn written(&self) -> u64 {
        // Ordering: Relaxed, because no word of a record is read after it.
        self.ring.next.load(Ordering::Relaxed)
    }

    /// Returns the number of slots: a power of two.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.ring.slots.len()
    }
}

impl<const WORDS: usize> Clone for Reader<WORDS> {
    fn clone(&self) -> Self {
        Self {
            ring: Arc::clone(&self.ring),
        }
    }
}

impl<const WORDS: usize> fmt::Debug for Reader<WORDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f.debug_struct("Reader").field("slots", &self.slots())).finish_non_exhaustive()
    }
}
