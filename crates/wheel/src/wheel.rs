//! The public type, and how timers move from level to level.

use crate::entries::{Entries, Key};
use crate::slots::{Item, LEVELS, SLOT_BITS, SlotId, Slots};
use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};
use core::{fmt, hint, iter};

/// How many of the lowest bits of a deadline a tick leaves out.
const TICK_BITS: u32 = 10;

/// A timing wheel: values with deadlines. The caller chooses the unit and the origin of time: see
/// the [crate's page](crate).
pub struct Wheel<T> {
    entries: Entries<T>,
    slots: LazySlots,
    /// The tick to which all slots are relative. Every used slot begins at this tick or later.
    elapsed: u64,
    /// The slot that `advance` is emptying, or `NONE`. Its timers come before all other timers.
    current: SlotId,
    /// How many timers have fired or been taken since `shrink_after_burst` last shrank the wheel.
    gone: usize,
}

/// A wheel with room for at most this many timers is not shrunk.
const KEPT: usize = 8_192;

impl<T> Wheel<T> {
    /// The length of a tick, in units: 1024. With nanoseconds a tick is about a microsecond.
    pub const TICK: u64 = 1 << TICK_BITS;

    /// Creates an empty wheel, whose time is 0. The first timer allocates about 9 KiB, and blocks
    /// of timers.
    #[must_use]
    pub fn new() -> Self {
        Self {
            entries: Entries::new(),
            slots: LazySlots(None),
            elapsed: 0,
            current: SlotId::NONE,
            gone: 0,
        }
    }

    /// Returns the number of timers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the wheel has no timer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a timer that fires at `at` or up to a tick later. O(1).
    ///
    /// A timer whose deadline has passed fires at the next [`advance`](Self::advance). A timer at
    /// `u64::MAX`, or less than a tick before it, never fires.
    ///
    /// # Panics
    /// Beyond 2^31 timers: "capacity overflow".
    pub fn insert(&mut self, at: u64, value: T) -> Key {
        self.insert_with(at, |_| value)
    }

    /// Adds a timer, as [`insert`](Self::insert) does, whose value `make` makes of the timer's key.
    /// If `make` panics, no timer is added, and the next timer may get the key. O(1).
    ///
    /// # Panics
    /// Beyond 2^31 timers: "capacity overflow".
    pub fn insert_with(&mut self, at: u64, make: impl FnOnce(Key) -> T) -> Key {
        let key = self.entries.insert(make);
        let index = key.index();
        self.put(Item { at, index });
        key
    }

    /// Removes a timer and returns its value; `None` if the timer has fired or has been cancelled.
    /// The next timer reuses the memory. O(1).
    #[must_use = "the value, or that the timer is gone already"]
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        self.take(key).map(|(_, value)| value)
    }

    /// Removes a timer, as [`cancel`](Self::cancel) does; returns its deadline and its value. O(1).
    #[must_use = "the value, or that the timer is gone already"]
    pub fn take(&mut self, key: Key) -> Option<(u64, T)> {
        let at = self.unlink(key)?;
        let value = self.entries.remove(key.index())?;
        self.gone += 1;
        Some((at, value))
    }

    /// Changes the deadline of a timer and returns the previous deadline; `None` if the timer has
    /// fired or has been cancelled. The key stays valid. O(1).
    pub fn reset(&mut self, key: Key, at: u64) -> Option<u64> {
        let place = self.entries.find(key)?;
        let before = self.slots.item(place).at;
        if self.slots.slot(place) == self.slot_of(at) {
            self.slots.set(place, at);
        } else {
            self.unlink(key)?;
            let index = key.index();
            self.put(Item { at, index });
        }
        Some(before)
    }

    /// Returns the deadline of a timer, as the caller gave it; `None` if the timer has fired or has
    /// been cancelled.
    ///
    /// O(1).
    #[must_use]
    pub fn deadline(&self, key: Key) -> Option<u64> {
        let place = self.entries.find(key)?;
        Some(self.slots.item(place).at)
    }

    /// Returns the value of a timer; `None` if the timer has fired or has been cancelled. O(1).
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        self.entries.get(key)
    }

    /// Returns when to call [`advance`](Self::advance) next: the earliest deadline, rounded up to
    /// the end of its tick. A result in the past means that a timer is due now. `None` if no timer
    /// will ever be due.
    ///
    /// The result is never late. After a timer has been cancelled or reset, the result may be as
    /// early as its former deadline; the call at this moment then fires nothing. Each cancelled or
    /// reset timer causes at most one such call. O(1).
    #[must_use]
    pub fn next_due(&self) -> Option<u64> {
        let first = self.slots.first()?;
        let mut tick = match first.level() {
            0 => self.start(first),
            _ => tick_of(self.slots.min(first)),
        };
        if self.slots.is_used(self.current) {
            tick = tick.min(tick_of(self.slots.min(self.current)));
        }
        tick.checked_mul(Self::TICK)
    }

    /// Moves the wheel's time on to `now` and calls `fire` with the value of each due timer, in the
    /// order of ticks. Timers of the same tick fire in any order. Fires or moves at most `most`
    /// timers; returns `true` if more remain to be fired or moved, so the caller calls again.
    ///
    /// A timer that moves to a lower level counts as a timer that fires, so each call is short even
    /// if many timers are due at once. Time never goes back: an earlier `now` leaves the wheel's
    /// time as it is.
    ///
    /// If `fire` panics, only the value that it was called with is lost.
    pub fn advance(&mut self, now: u64, most: usize, mut fire: impl FnMut(T)) -> bool {
        let target = (now >> TICK_BITS).max(self.elapsed);
        let mut left = most;
        while let Some(slot) = self.turn(target) {
            let is_lowest = slot.level() == 0;
            let mut fetched = 0;
            while left > 0 {
                if fetched == 0 {
                    fetched = self.prefetch(slot, left);
                }
                let Some(item) = self.slots.pop(slot) else {
                    break;
                };
                fetched -= 1;
                left -= 1;
                if !is_lowest {
                    self.put(item);
                } else if let Some(value) = self.entries.remove(item.index) {
                    self.gone += 1;
                    fire(value);
                }
            }
            if left == 0 {
                return self.turn(target).is_some();
            }
        }
        false
    }

    /// Removes the timers, in any order. Values that the iterator has not returned stay.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        iter::from_fn(|| {
            let slot = self.slots.first()?;
            let item = self.slots.pop(slot)?;
            self.entries.remove(item.index)
        })
    }

    /// Drops all values. All keys become stale.
    pub fn clear(&mut self) {
        self.drain().for_each(drop);
    }

    /// Frees memory, as [`shrink`](Self::shrink) does, once most timers of a burst have gone. The
    /// caller calls this function after timers have fired or been cancelled. A wheel with room for
    /// at most 8,192 timers, or for at most four times its timers, keeps its memory. O(1), except
    /// for a shrink; between two shrinks more timers go than remain.
    #[inline]
    pub fn shrink_after_burst(&mut self) {
        let (room, len) = (self.entries.room(), self.len());
        if room > KEPT && len < room / 4 && self.gone > len && self.entries.may_shrink() {
            self.gone = 0;
            self.shrink();
            if self.entries.room() == room {
                self.entries.keep_last();
            }
        }
    }

    /// Frees memory after a burst: the blocks behind the last block with a waiting timer, and
    /// unused chunks. O(n) in the largest number of timers that the wheel has had at once.
    pub fn shrink(&mut self) {
        self.entries.shrink();
        if self.is_empty() {
            self.slots = LazySlots(None);
            return;
        }
        let entries = &mut self.entries;
        self.slots
            .shrink(|index, place| entries.set_place(index, place));
    }

    /// Returns the slot whose timers move or fire next, if the slot begins by `target`. Moves the
    /// wheel's time to the beginning of the slot, or to `target` if it returns `None`.
    fn turn(&mut self, target: u64) -> Option<SlotId> {
        if self.slots.is_used(self.current) {
            return Some(self.current);
        }
        let first = self.slots.first();
        let Some((slot, start)) = first
            .map(|slot| (slot, self.start(slot)))
            .filter(|&(_, start)| start <= target)
        else {
            self.elapsed = target;
            self.current = SlotId::NONE;
            return None;
        };
        self.elapsed = start;
        self.current = slot;
        Some(slot)
    }

    /// Reads the entries of the timers that leave the slot next, at most `most`, and returns their
    /// number. The reads miss the cache all at the same time; separate misses, at each timer that
    /// moves or fires, take twice as long.
    fn prefetch(&self, slot: SlotId, most: usize) -> usize {
        let items = self.slots.first_chunk(slot);
        let next = &items[items.len().saturating_sub(most)..];
        let read = |sum, item: &Item| sum ^ self.entries.generation(item.index);
        hint::black_box(next.iter().fold(0, read));
        next.len()
    }

    /// Returns the first tick of a used slot.
    fn start(&self, slot: SlotId) -> u64 {
        let shift = SLOT_BITS * slot.level();
        let above = self.elapsed >> shift >> SLOT_BITS << SLOT_BITS;
        (above | u64::from(slot.digit())) << shift
    }

    /// Returns the slot of a deadline at the current time. The level is the highest digit in which
    /// the deadline's tick differs from the wheel's.
    fn slot_of(&self, at: u64) -> SlotId {
        let tick = tick_of(at).max(self.elapsed);
        let differs = (tick ^ self.elapsed) | 1;
        let level = differs.ilog2() / SLOT_BITS;
        debug_assert!(level < LEVELS);
        let digit = tick >> (SLOT_BITS * level) & ((1 << SLOT_BITS) - 1);
        SlotId::new(level, digit as u32)
    }

    fn put(&mut self, item: Item) {
        let slot = self.slot_of(item.at);
        let place = self.slots.push(slot, item);
        self.entries.set_place(item.index, place);
    }

    /// Takes a timer out of its slot. Returns its deadline.
    fn unlink(&mut self, key: Key) -> Option<u64> {
        let place = self.entries.find(key)?;
        let (at, moved) = self.slots.remove(place);
        if moved != key.index() {
            self.entries.set_place(moved, place);
        }
        Some(at)
    }
}

/// The slots, which are allocated with the first timer.
struct LazySlots(Option<Box<Slots>>);

/// The slots of a wheel that has had no timer.
static EMPTY: Slots = Slots::new();

impl Deref for LazySlots {
    type Target = Slots;

    #[inline]
    fn deref(&self) -> &Slots {
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl DerefMut for LazySlots {
    #[inline]
    fn deref_mut(&mut self) -> &mut Slots {
        self.0.get_or_insert_with(|| Box::new(Slots::new()))
    }
}

/// Returns the first tick that begins at the deadline or later.
#[inline]
fn tick_of(at: u64) -> u64 {
    at.div_ceil(1 << TICK_BITS)
}

impl<T> Default for Wheel<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Wheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
