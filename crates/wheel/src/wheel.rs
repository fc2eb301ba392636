//! What users see, and how timers go from level to level.

use crate::entries::{Entries, Key};
use crate::slots::{Item, LEVELS, SLOT_BITS, SlotId, Slots};
use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};
use core::{fmt, hint, iter};

/// How many of the lowest bits of a deadline a tick leaves out.
const TICK_BITS: u32 = 10;

/// Values with deadlines. The unit of time, and when it begins, are the caller's: see the
/// [crate's page](crate).
pub struct Wheel<T> {
    entries: Entries<T>,
    slots: LazySlots,
    /// The tick that all slots are relative to. No used slot begins before it.
    elapsed: u64,
    /// The slot that is being emptied, if there is one: it comes before all others.
    current: SlotId,
    /// How many timers have gone since memory was last given back.
    gone: usize,
}

/// How many timers a wheel keeps room for.
const KEPT: usize = 8_192;

impl<T> Wheel<T> {
    /// The length of a tick, in units: 1024. With nanoseconds that is about a microsecond.
    pub const TICK: u64 = 1 << TICK_BITS;

    /// An empty wheel, whose time is 0. From the first timer on it takes about 9 KiB, and blocks of
    /// timers.
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

    /// The number of timers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no timer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a timer that fires when it is `at`, or up to a tick later. O(1).
    ///
    /// A deadline that has passed fires with the next [`advance`](Self::advance). `u64::MAX` is
    /// never, and so is what is less than a tick before it.
    ///
    /// # Panics
    /// Beyond 2^31 timers: "capacity overflow".
    pub fn insert(&mut self, at: u64, value: T) -> Key {
        self.insert_with(at, |_| value)
    }

    /// As [`insert`](Self::insert), with a value that `make` makes of the timer's key. When `make`
    /// panics, there is no timer, and the next one may get the key. O(1).
    ///
    /// # Panics
    /// As there.
    pub fn insert_with(&mut self, at: u64, make: impl FnOnce(Key) -> T) -> Key {
        let key = self.entries.insert(make);
        let index = key.index();
        self.put(Item { at, index });
        key
    }

    /// Takes a timer away and returns its value; `None` if it has fired or has been cancelled. Its
    /// memory is free for the next one. O(1).
    #[must_use = "the value, or that the timer is gone already"]
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        self.take(key).map(|(_, value)| value)
    }

    /// As [`cancel`](Self::cancel); returns the deadline, too. O(1).
    #[must_use = "the value, or that the timer is gone already"]
    pub fn take(&mut self, key: Key) -> Option<(u64, T)> {
        let at = self.unlink(key)?;
        let value = self.entries.remove(key.index())?;
        self.gone += 1;
        Some((at, value))
    }

    /// Gives a timer another deadline and returns the one that it had; `None` if it has fired or
    /// has been cancelled. The key stays valid. O(1).
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

    /// The deadline of a timer, as it was given; `None` if it has fired or has been cancelled.
    ///
    /// O(1).
    #[must_use]
    pub fn deadline(&self, key: Key) -> Option<u64> {
        let place = self.entries.find(key)?;
        Some(self.slots.item(place).at)
    }

    /// The value of a timer; `None` if it has fired or has been cancelled. O(1).
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        self.entries.get(key)
    }

    /// When to call [`advance`](Self::advance) next: the earliest deadline, up to the end of its
    /// tick. It has passed if something is due already. `None` if nothing will ever be due.
    ///
    /// It is never later than that. It may be earlier after a timer has been cancelled or reset:
    /// then it is no earlier than that timer was due, and the call at that moment fires nothing.
    /// There is at most one such call for each timer that has been cancelled or reset. O(1).
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

    /// Moves the wheel's time on to `now` and calls `fire` with the value of each timer that is
    /// due: in the order of their ticks, and within a tick in none. Returns whether it has stopped
    /// before it was done, after `most` timers: then call it again.
    ///
    /// A timer that moves to a lower level counts as one that fires. So each call is short, however
    /// many timers are due at once. Time that goes back counts as time that stands still.
    ///
    /// When `fire` panics, that value is lost and no other.
    pub fn advance(&mut self, now: u64, most: usize, mut fire: impl FnMut(T)) -> bool {
        let target = (now >> TICK_BITS).max(self.elapsed);
        let mut left = most;
        while let Some(slot) = self.turn(target) {
            let is_lowest = slot.level() == 0;
            let mut fetched = 0;
            while left > 0 {
                if fetched == 0 {
                    fetched = self.fetch(slot, left);
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

    /// Takes the timers out, in no order. What the iterator has not returned stays.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        iter::from_fn(|| {
            let slot = self.slots.first()?;
            let item = self.slots.pop(slot)?;
            self.entries.remove(item.index)
        })
    }

    /// Drops all values. All keys are stale then.
    pub fn clear(&mut self) {
        self.drain().for_each(drop);
    }

    /// As [`shrink`](Self::shrink), when most timers of a burst have gone: to be called after some
    /// have. Room for up to 8,192 timers stays, or for four times those that there are, and what
    /// lies before a timer that waits. O(1), but for a shrink, between which as many timers go as
    /// there are.
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

    /// Gives memory back that no timer needs, as far as it is whole blocks: after a burst. O(n) for
    /// the timers that there have been at once.
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

    /// The slot whose timers are to be moved or fired next, as far as it begins by `target`. Moves
    /// the wheel's time to the slot's beginning, or to `target` if there is none.
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

    /// Reads the entries of the timers that come out of the slot next, at most so many, and returns
    /// of how many. These reads are cache misses, but all at the same time: with one at each timer
    /// that is moved or fired, it takes twice as long.
    fn fetch(&self, slot: SlotId, most: usize) -> usize {
        let items = self.slots.first_chunk(slot);
        let next = &items[items.len().saturating_sub(most)..];
        let read = |sum, item: &Item| sum ^ self.entries.generation(item.index);
        hint::black_box(next.iter().fold(0, read));
        next.len()
    }

    /// The first tick of a used slot.
    fn start(&self, slot: SlotId) -> u64 {
        let shift = SLOT_BITS * slot.level();
        let above = self.elapsed >> shift >> SLOT_BITS << SLOT_BITS;
        (above | u64::from(slot.digit())) << shift
    }

    /// The slot that a deadline belongs into, as the time is now: its level is that of the highest
    /// digit in which its tick differs from the wheel's.
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

/// The slots, which take no memory while there has been no timer.
struct LazySlots(Option<Box<Slots>>);

/// Those of a wheel without timers.
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

/// The first tick at which a deadline has come.
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
