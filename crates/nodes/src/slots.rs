//! A table of values by 64-bit ids: its slots are used again, its ids never.
//!
//! **Problem.** Any thread may look a value up by its id at any time, and values come and go by the
//! million. A hash map costs a hash, a lock and a search for each insertion or removal, and copies
//! all its entries whenever it grows.
//!
//! **An id** is the number of a slot and, above it, a *generation*: how often the slot has been
//! used. A look-up is therefore an index and a comparison. The id of a removed value finds nothing,
//! whatever its slot holds by then. A slot whose generations are used up is never used again.
//!
//! **A slot's word** tells its generation, whether the slot is vacant, and how many threads are
//! reading it.
//! 1. Only the *claimer* of a slot may fill it while it is vacant: it writes the value, then the
//!    word.
//! 2. A *reader* counts itself in, by a compare-and-swap that checks generation and occupancy;
//!    copies from the value; and counts itself out.
//! 3. The thread that *frees* the slot marks it as vacant, waits until the readers inside have
//!    left, takes the value, and sets the next generation.
//!
//! | word | value | a reader | the claimer |
//! |---|---|---|---|
//! | 0 | none | finds nothing | may fill it |
//! | generation | there | counts itself in | may free it |
//! | generation, readers | there | counts itself in | may free it: waits for them |
//! | generation, `VACANT`, readers | there | finds nothing | waits for them |
//! | generation, `VACANT` | none | finds nothing | may fill it, by the id of that generation |
//!
//! **Memory.** Slots are in buckets, each twice as large as the previous bucket. Buckets never
//! move, and are freed with the table. With a pointer as its value a slot takes sixteen bytes.
//!
//! ```
//! use ganger_nodes::slots::Slots;
//!
//! let slots = Slots::new();
//! let first = slots.claim_fresh(1).start;
//! // SAFETY: the id has just been claimed, and the slot is filled once.
//! unsafe { slots.fill(first, "a process") };
//! assert_eq!(slots.get(first), Some("a process"));
//!
//! // SAFETY: the only time for this id.
//! let (value, second) = unsafe { slots.free(first) };
//! assert_eq!(value, Some("a process"));
//! // The same slot has another id, and the first id finds nothing any more.
//! assert_ne!(second, Some(first));
//! assert_eq!(slots.get(first), None);
//! ```

use ganger_sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use ganger_sync::cell::UnsafeCell;
use ganger_sync::{CachePadded, hint, sized, thread};
#[cfg(not(ganger_loom))]
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

/// Slots in the first bucket.
const FIRST: u32 = if cfg!(ganger_loom) { 2 } else { 64 };

/// Buckets: enough for 2^32 slots.
const BUCKETS: usize = sized((u32::BITS - FIRST.ilog2()) as usize, 2);

const READER: u64 = 1;
const VACANT: u64 = 1 << 31;
const GENERATION: u64 = 1 << 32;

/// How often a thread that frees a slot spins before it yields the processor.
const SPINS: u32 = 64;

/// The lowest id: the first generation is not zero.
pub const FIRST_ID: u64 = GENERATION;

/// A table of values by ids that are never used twice. See the module's page.
pub struct Slots<T> {
    buckets: [AtomicPtr<Slot<T>>; BUCKETS],
    /// The first generation of each slot, shifted to its place in an id.
    first: u64,
    /// The first slot that has never been claimed.
    fresh: CachePadded<AtomicU32>,
    owns: PhantomData<T>,
}

/// All zero until the slot is used.
struct Slot<T> {
    word: AtomicU64,
    /// Initialised unless the slot is vacant, or has never been used.
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: values go in on one thread, are read on others, and come out on a third, which needs `T:
// Send + Sync`. The word orders these accesses, as the head of this file says.
unsafe impl<T: Send + Sync> Send for Slots<T> {}
// SAFETY: the reasons of `Send` cover shared tables.
unsafe impl<T: Send + Sync> Sync for Slots<T> {}

/// Returns the bucket of a slot, and its place there.
#[inline]
fn locate(index: u32) -> (usize, usize) {
    // Bucket `b` begins at `FIRST * (2^b - 1)`.
    let shifted = index as usize + FIRST as usize;
    let bucket = (shifted / FIRST as usize).ilog2() as usize;
    (bucket, shifted - size_of_bucket(bucket))
}

#[inline]
fn size_of_bucket(bucket: usize) -> usize {
    (FIRST as usize) << bucket
}

/// Returns the slot that an id names, and its generation.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it is the lower half")]
fn split(id: u64) -> (u32, u64) {
    (id as u32, id & !(GENERATION - 1))
}

impl<T> Slots<T> {
    /// Creates a table without slots, whose generations begin at 1. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::beginning_at(1)
    }

    /// Creates a table, as [`new`](Self::new) does, whose generations begin at `generation`: for
    /// tables whose ids must differ. Each slot then has fewer generations.
    ///
    /// # Panics
    /// If the generation is zero.
    #[must_use]
    pub fn beginning_at(generation: u32) -> Self {
        assert!(
            generation > 0,
            "a slot of generation zero has never been used"
        );
        Self {
            first: u64::from(generation) * GENERATION,
            buckets: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            fresh: CachePadded::new(AtomicU32::new(0)),
            owns: PhantomData,
        }
    }

    /// Claims up to `count` slots that have never been used, and returns their first ids: none if
    /// all 2^32 slots are claimed. The caller may fill each of them, and frees each of them.
    /// Allocates if the slots are in a new bucket.
    #[must_use]
    pub fn claim_fresh(&self, count: u32) -> Range<u64> {
        // Ordering: Relaxed: only uniqueness matters; buckets are published by their pointers.
        let claim = self
            .fresh
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |first| {
                let last = first.saturating_add(count).min(Self::most());
                (last > first).then_some(last)
            });
        let Ok(first) = claim else {
            return 0..0;
        };
        let last = first.saturating_add(count).min(Self::most());
        let buckets = locate(first).0..=locate(last - 1).0;
        buckets.for_each(|bucket| self.grow(bucket));
        self.first | u64::from(first)..self.first + u64::from(last)
    }

    /// Returns how many slots the table can have.
    fn most() -> u32 {
        let all = u64::from(FIRST) * ((1 << BUCKETS) - 1);
        u32::try_from(all).unwrap_or(u32::MAX)
    }

    #[cold]
    fn grow(&self, bucket: usize) {
        let place = &self.buckets[bucket];
        // Ordering: Relaxed: `slot`, which follows the pointer, loads it again.
        if !place.load(Ordering::Relaxed).is_null() {
            return;
        }
        let fresh = Slot::allocate(size_of_bucket(bucket));
        // Ordering: Release pairs with the Acquire in `slot`: a thread that sees the bucket sees
        // its zeros. Relaxed on failure: another thread was faster, and `grow` reads nothing
        // through its pointer.
        let grown =
            place.compare_exchange(ptr::null_mut(), fresh, Ordering::Release, Ordering::Relaxed);
        if grown.is_err() {
            // SAFETY: allocated above with this size, and no other thread has seen it.
            unsafe { Slot::free(fresh, size_of_bucket(bucket)) };
        }
    }

    /// Returns the slot with a number, if its bucket exists.
    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        // On 32-bit platforms a larger number would overflow.
        if usize::BITS == 32 && index >= Self::most() {
            return None;
        }
        let (bucket, place) = locate(index);
        // Ordering: Acquire pairs with the Release in `grow`.
        let slots = self.buckets.get(bucket)?.load(Ordering::Acquire);
        // SAFETY: null, or a bucket of this number's size, which stays in place as long as the
        // table lives.
        (!slots.is_null()).then(|| unsafe { &*slots.add(place) })
    }

    /// Puts a value into the slot of an id claimed by the caller. O(1); lock-free.
    ///
    /// # Safety
    /// The id comes from [`claim_fresh`](Self::claim_fresh) or [`free`](Self::free) of this table,
    /// and has been neither filled nor freed. No other thread fills or frees it meanwhile.
    pub unsafe fn fill(&self, id: u64, value: T) {
        let (index, generation) = split(id);
        let Some(slot) = self.slot(index) else {
            return;
        };
        // SAFETY: the slot is the caller's, and readers only look at the value after the word shows
        // it.
        slot.value
            .with_mut(|place| unsafe { (*place).write(value) });
        // Ordering: Release pairs with the Acquire in `read` and `free`. No reader counts itself
        // into a vacant slot, so the store overwrites no count.
        slot.word.store(generation, Ordering::Release);
    }

    /// Returns a copy of the id's value, if it exists. The clone must be short: see
    /// [`read`](Self::read).
    #[inline]
    #[must_use]
    pub fn get(&self, id: u64) -> Option<T>
    where
        T: Clone,
    {
        self.read(id, T::clone)
    }

    /// Calls `f` with the id's value, if it exists. O(1); lock-free.
    ///
    /// A thread that frees the slot waits until `f` has returned. The thread waits for ever if `f`
    /// panics, or if `f` frees the slot itself. `f` must be short.
    #[inline]
    pub fn read<R>(&self, id: u64, f: impl FnOnce(&T) -> R) -> Option<R> {
        let (index, generation) = split(id);
        let slot = self.slot(index)?;
        // Ordering: Relaxed, because no value is read before the exchange below acquires.
        let mut word = slot.word.load(Ordering::Relaxed);
        loop {
            if word & !(VACANT - 1) != generation || generation == 0 {
                return None;
            }
            // Ordering: Acquire pairs with the Release in `fill`, for the value. Relaxed on
            // failure, because no value is read then.
            match slot.word.compare_exchange_weak(
                word,
                word + READER,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        // SAFETY: the slot has a value, and a thread that frees the slot waits for this reader.
        let result = slot
            .value
            .with(|place| f(unsafe { (*place).assume_init_ref() }));
        // Ordering: Release pairs with the Acquire in `free`, which takes the value afterwards.
        slot.word.fetch_sub(READER, Ordering::Release);
        Some(result)
    }

    /// Ends the use of an id, with or without a value. Returns the value, and the next id of the
    /// slot, now claimed by the caller, unless the slot's generations are used up.
    ///
    /// Spins while readers are inside the value, then yields the thread.
    ///
    /// # Safety
    /// The id comes from [`claim_fresh`](Self::claim_fresh) or [`free`](Self::free) of this table,
    /// and this is the only call for it. No other thread fills it meanwhile.
    pub unsafe fn free(&self, id: u64) -> (Option<T>, Option<u64>) {
        let (index, generation) = split(id);
        let Some(slot) = self.slot(index) else {
            return (None, None);
        };
        // Ordering: Relaxed: the hand-over of the id to this thread orders the fill before this
        // load.
        let is_filled = slot.word.load(Ordering::Relaxed) & !(VACANT - 1) == generation;
        let value = is_filled.then(|| {
            // Ordering: Acquire pairs with the Release in `fill`, and with the Release in `read` of
            // readers that have left.
            let mut word = slot.word.fetch_or(VACANT, Ordering::Acquire);
            let mut looks = 0;
            while word & (VACANT - 1) != 0 {
                looks += 1;
                if looks < SPINS {
                    hint::spin_loop();
                } else {
                    thread::yield_now();
                }
                // Ordering: Acquire pairs with the Release in `read`.
                word = slot.word.load(Ordering::Acquire);
            }
            // SAFETY: the slot has a value, no reader is inside, and none enters while the slot is
            // vacant.
            slot.value
                .with_mut(|place| unsafe { (*place).assume_init_read() })
        });
        let (next, is_over) = generation.overflowing_add(GENERATION);
        // Ordering: Release for symmetry with `fill`: the claimer learns of the slot by the next
        // id, not by this store. A slot whose generations are used up stays vacant with its last
        // generation, so its word matches no id.
        slot.word.store(
            if is_over { generation } else { next } | VACANT,
            Ordering::Release,
        );
        (value, (!is_over).then_some(next | u64::from(index)))
    }

    /// Returns the ids of all values. Values that come or go meanwhile may or may not be included.
    /// O(slots).
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        self.ids_among(0..u32::MAX).0
    }

    /// Returns ids as [`ids`](Self::ids) does, of the values in a range of slots. Returns also the
    /// first slot behind the range, if there is one that was ever claimed. O(slots in the range).
    pub fn ids_among(&self, slots: Range<u32>) -> (impl Iterator<Item = u64>, Option<u32>) {
        // Ordering: Relaxed: a slot claimed after this load is claimed meanwhile.
        let fresh = self.fresh.load(Ordering::Relaxed);
        let end = slots.end.min(fresh);
        let ids = (slots.start..end).filter_map(|index| {
            // Ordering: Relaxed: no value is read here, and `read` checks again.
            let word = self.slot(index)?.word.load(Ordering::Relaxed);
            let is_filled = word & VACANT == 0 && word >= GENERATION;
            is_filled.then(|| word & !(GENERATION - 1) | u64::from(index))
        });
        (ids, (end < fresh).then_some(end))
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Slots<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").finish_non_exhaustive()
    }
}

impl<T> Slot<T> {
    #[cfg(not(ganger_loom))]
    fn allocate(count: usize) -> *mut Self {
        let Ok(layout) = Layout::array::<Self>(count) else {
            unreachable!("a bucket is smaller than the address space")
        };
        // SAFETY: the size is not zero.
        let slots = unsafe { alloc_zeroed(layout) };
        if slots.is_null() {
            handle_alloc_error(layout);
        }
        slots.cast()
    }

    #[cfg(ganger_loom)]
    fn allocate(count: usize) -> *mut Self {
        let slot = || Self {
            word: AtomicU64::new(0),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        };
        let slots: Box<[Self]> = std::iter::repeat_with(slot).take(count).collect();
        Box::into_raw(slots).cast()
    }

    /// Frees the slots.
    ///
    /// # Safety
    /// The slots come from [`allocate`](Self::allocate) with this count, and nothing uses them any
    /// more.
    unsafe fn free(slots: *mut Self, count: usize) {
        // SAFETY: a boxed slice has the layout of an array; the caller keeps this function's
        // contract.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(slots, count)) });
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        let ids: Vec<u64> = self.ids().collect();
        for id in ids {
            let (index, generation) = split(id);
            let Some(slot) = self.slot(index) else {
                continue;
            };
            // Ordering: Relaxed: the table is this thread's alone.
            slot.word.store(generation | VACANT, Ordering::Relaxed);
            // The value is dropped in place, because it may be larger than the stack.
            // SAFETY: the table is this thread's alone, and the id had a value until now.
            slot.value
                .with_mut(|place| unsafe { (*place).assume_init_drop() });
        }
        for (bucket, place) in self.buckets.iter().enumerate() {
            // Ordering: Relaxed: the table is this thread's alone.
            let slots = place.load(Ordering::Relaxed);
            if !slots.is_null() {
                // SAFETY: `grow` has allocated the bucket with this size, and no slot has a value.
                unsafe { Slot::free(slots, size_of_bucket(bucket)) };
            }
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
