//! The table, its slots, and their words.
//!
//! **Problem.** Any thread may look a value up by its id at any time, and values come and go by the
//! million. A hash map costs a hash, a lock and a search for each that comes or goes, and copies
//! all it holds whenever it grows.
//!
//! **An id** is the number of a slot and, above it, a *generation*: how often the slot has been
//! used. So a look-up is an index and a comparison. The id of a value that is gone finds nothing,
//! whatever its slot holds by then. A slot whose generations are used up is never used again.
//!
//! **A slot's word** says its generation, whether it is vacant, and how many threads are reading
//! it.
//! 1. The *claimer* of a slot alone may fill it while it is vacant: it writes the value, then the
//!    word.
//! 2. A *reader* counts itself in, if generation and occupancy are what it expects, by a compare
//!    and swap; copies what it wants of the value; and counts itself out.
//! 3. The thread that *frees* the slot marks it as vacant, waits until the readers inside have
//!    left, takes the value, and goes on to the next generation.
//!
//! | word | value | a reader | the claimer |
//! |---|---|---|---|
//! | 0 | none | finds nothing | may fill it |
//! | generation | there | counts itself in | may free it |
//! | generation, readers | there | counts itself in | may free it: waits for them |
//! | generation, `VACANT`, readers | there | finds nothing | waits for them |
//! | generation, `VACANT` | none | finds nothing | may fill it, by the id of that generation |
//!
//! **Memory.** Slots are in buckets, each twice as large as the one before. Buckets are never
//! moved, and are returned when the table is dropped. With a pointer as its value a slot takes
//! sixteen bytes.

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

/// How often a thread that frees a slot looks again before it lets others use the processor.
const SPINS: u32 = 64;

/// No table gives out an id below this: the first generation is not zero.
pub const FIRST_ID: u64 = GENERATION;

/// A table of values by ids that are never used twice. See the crate's page.
pub struct Slots<T> {
    buckets: [AtomicPtr<Slot<T>>; BUCKETS],
    /// The first generation of each slot, at its place in an id.
    first: u64,
    /// Slots from here on have never been claimed.
    fresh: CachePadded<AtomicU32>,
    owns: PhantomData<T>,
}

/// All zero when it has never been used.
struct Slot<T> {
    word: AtomicU64,
    /// There is one unless the slot is vacant, or has never been used.
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: values go in on one thread, are read on others, and come out on a third: `T: Send + Sync`
// is what that takes. The word orders these accesses, as the head of this file says.
unsafe impl<T: Send + Sync> Send for Slots<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Slots<T> {}

/// The bucket of a slot, and its place there.
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

/// The slot that an id names, and its generation.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it is the lower half")]
fn split(id: u64) -> (u32, u64) {
    (id as u32, id & !(GENERATION - 1))
}

impl<T> Slots<T> {
    /// A table without slots, whose generations begin at 1. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::beginning_at(1)
    }

    /// As [`new`](Self::new), with generations that begin at that one: for tables whose ids are not
    /// to be taken for each other's. Fewer generations are left for each slot.
    ///
    /// # Panics
    /// When the generation is zero.
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

    /// Claims up to `count` slots that have never been used, and returns their first ids: none when
    /// there are 2^32 slots already. The caller may fill each of them, and frees each of them.
    /// Allocates when the slots are in a new bucket.
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

    /// How many slots there can be.
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
        // Ordering: Release pairs with the Acquire in `slot`: the slots are zero before they are
        // seen. Relaxed on failure: another thread was faster, and nothing is read through its
        // pointer here.
        let grown =
            place.compare_exchange(ptr::null_mut(), fresh, Ordering::Release, Ordering::Relaxed);
        if grown.is_err() {
            // SAFETY: it was allocated above with this size, and no other thread has seen it.
            unsafe { Slot::free(fresh, size_of_bucket(bucket)) };
        }
    }

    /// The slot of that number, if there is one.
    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        // Where addresses have 32 bits, such a number would overflow.
        if usize::BITS == 32 && index >= Self::most() {
            return None;
        }
        let (bucket, place) = locate(index);
        // Ordering: Acquire pairs with the Release in `grow`.
        let slots = self.buckets.get(bucket)?.load(Ordering::Acquire);
        // SAFETY: null, or a bucket of that size, which stays where it is as long as the table
        // does.
        (!slots.is_null()).then(|| unsafe { &*slots.add(place) })
    }

    /// Puts a value into the slot of an id that the caller has claimed. O(1); lock-free.
    ///
    /// # Safety
    /// The id comes from [`claim_fresh`](Self::claim_fresh) or [`free`](Self::free) of this table,
    /// and has been neither filled nor freed. No other thread fills or frees it meanwhile.
    pub unsafe fn fill(&self, id: u64, value: T) {
        let (index, generation) = split(id);
        let Some(slot) = self.slot(index) else {
            return;
        };
        // SAFETY: the slot is the caller's, and readers look at the value only when the word says
        // so.
        slot.value
            .with_mut(|place| unsafe { (*place).write(value) });
        // Ordering: Release pairs with the Acquire in `read` and `free`. No reader counts itself
        // into a vacant slot, so that the store overwrites no count.
        slot.word.store(generation, Ordering::Release);
    }

    /// A copy of the value of that id, if there is one. As [`read`](Self::read).
    #[inline]
    #[must_use]
    pub fn get(&self, id: u64) -> Option<T>
    where
        T: Clone,
    {
        self.read(id, T::clone)
    }

    /// Calls `f` with the value of that id, if there is one. O(1); lock-free.
    ///
    /// A thread that frees the slot waits until `f` has returned, and waits for ever when `f`
    /// panics, or frees the slot itself: `f` has to be short.
    #[inline]
    pub fn read<R>(&self, id: u64, f: impl FnOnce(&T) -> R) -> Option<R> {
        let (index, generation) = split(id);
        let slot = self.slot(index)?;
        // Ordering: Relaxed, because nothing is read through it before the exchange below acquires.
        let mut word = slot.word.load(Ordering::Relaxed);
        loop {
            if word & !(VACANT - 1) != generation || generation == 0 {
                return None;
            }
            // Ordering: Acquire pairs with the Release in `fill`, for the value. Relaxed on
            // failure, as for the load.
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
        // SAFETY: there is a value, and a thread that frees the slot waits for this reader.
        let result = slot
            .value
            .with(|place| f(unsafe { (*place).assume_init_ref() }));
        // Ordering: Release pairs with the Acquire in `free`, which takes the value after this.
        slot.word.fetch_sub(READER, Ordering::Release);
        Some(result)
    }

    /// Ends the use of an id, whether or not it has a value. Returns the value, and the next id of
    /// the slot, which the caller has claimed with this, unless its generations are used up.
    ///
    /// Spins while readers are inside the value, and then yields the thread.
    ///
    /// # Safety
    /// The id comes from [`claim_fresh`](Self::claim_fresh) or [`free`](Self::free) of this table,
    /// and this is the only call for it. No other thread fills it meanwhile.
    pub unsafe fn free(&self, id: u64) -> (Option<T>, Option<u64>) {
        let (index, generation) = split(id);
        let Some(slot) = self.slot(index) else {
            return (None, None);
        };
        // Ordering: Relaxed: whatever has passed the id on to this thread orders the fill before
        // this.
        let is_filled = slot.word.load(Ordering::Relaxed) & !(VACANT - 1) == generation;
        let value = is_filled.then(|| {
            // Ordering: Acquire pairs with the Release in `fill`, and with that of readers that
            // have left.
            let mut word = slot.word.fetch_or(VACANT, Ordering::Acquire);
            let mut looks = 0;
            while word & (VACANT - 1) != 0 {
                looks += 1;
                if looks < SPINS {
                    hint::spin_loop();
                } else {
                    thread::yield_now();
                }
                // Ordering: Acquire, as above.
                word = slot.word.load(Ordering::Acquire);
            }
            // SAFETY: there is a value, no reader is left, and none comes while the slot is vacant.
            slot.value
                .with_mut(|place| unsafe { (*place).assume_init_read() })
        });
        let (next, is_over) = generation.overflowing_add(GENERATION);
        // Ordering: Release for symmetry with `fill`: the next id tells its claimer of the slot,
        // and this store need not. A slot whose generations are used up stays at the last one,
        // which no id has.
        slot.word.store(
            if is_over { generation } else { next } | VACANT,
            Ordering::Release,
        );
        (value, (!is_over).then_some(next | u64::from(index)))
    }

    /// The ids of all values. Those that come or go meanwhile may or may not be among them.
    /// O(slots).
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        // Ordering: Relaxed: a slot that is claimed after this look is claimed meanwhile.
        let fresh = self.fresh.load(Ordering::Relaxed);
        (0..fresh).filter_map(|index| {
            // Ordering: Relaxed: nothing is read through it, and `read` looks again.
            let word = self.slot(index)?.word.load(Ordering::Relaxed);
            let is_filled = word & VACANT == 0 && word >= GENERATION;
            is_filled.then(|| word & !(GENERATION - 1) | u64::from(index))
        })
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

    /// # Safety
    /// They come from [`allocate`](Self::allocate) with that count, and nothing uses them any more.
    unsafe fn free(slots: *mut Self, count: usize) {
        // SAFETY: a boxed slice has the layout of an array; as above.
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
            // In its place: a value may be larger than the stack.
            // SAFETY: the table is this thread's alone, and the id had a value until now.
            slot.value
                .with_mut(|place| unsafe { (*place).assume_init_drop() });
        }
        for (bucket, place) in self.buckets.iter().enumerate() {
            // Ordering: Relaxed: the table is this thread's alone.
            let slots = place.load(Ordering::Relaxed);
            if !slots.is_null() {
                // SAFETY: it was allocated in `grow` with this size, and no slot has a value.
                unsafe { Slot::free(slots, size_of_bucket(bucket)) };
            }
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
