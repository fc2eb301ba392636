//! The slots of all levels: which timers are in which, and the earliest of each slot.
//!
//! A slot is a list of chunks. Only the first chunk may have free places: a timer that is removed
//! is replaced by the last timer of the first chunk, so chunks have no gaps.

use crate::blocks::{Blocks, NONE};

/// How many slots a level has, as a power of two.
pub(crate) const SLOT_BITS: u32 = 6;
const IN_LEVEL: u32 = 1 << SLOT_BITS;
/// Levels for 54 bits, and one more for deadlines that never come.
pub(crate) const LEVELS: u32 = 10;
/// The last level has two slots.
const SLOTS: u32 = (LEVELS - 1) * IN_LEVEL + 2;

/// A timer in a chunk. Packed, so that an item seldom spans two cache lines.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
pub(crate) struct Item {
    pub(crate) at: u64,
    pub(crate) index: u32,
}

/// How many timers a chunk has.
const IN_CHUNK: u16 = 20;
/// The bits of a place that tell the timers of a chunk apart.
const ITEM_BITS: u32 = 5;

/// Four cache lines.
#[repr(C, align(64))]
struct Chunk {
    items: [Item; IN_CHUNK as usize],
    /// The next chunk of the slot, or the next vacant chunk.
    next: u32,
    slot: SlotId,
}

/// How many chunks a block has.
const BLOCK: usize = 32;

/// A chunk, and an item in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(pub(crate) u32);

/// A slot: its level, and its digit there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId(u32);

#[derive(Clone, Copy)]
struct Slot {
    /// A lower bound of the deadlines: the earliest deadline ever put into the slot.
    min: u64,
    first: u32,
    /// How many timers the first chunk has.
    len: u16,
}

/// The slots, with all timers in them.
pub(crate) struct Slots {
    slots: [Slot; SLOTS as usize],
    /// For each level, which slots have timers.
    used: [u64; LEVELS as usize],
    chunks: Blocks<Chunk, BLOCK>,
    vacant: u32,
}

impl Slots {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            slots: [Slot::EMPTY; SLOTS as usize],
            used: [0; LEVELS as usize],
            chunks: Blocks::new(),
            vacant: NONE,
        }
    }

    /// Returns the first used slot of the lowest level that has a used slot.
    #[inline]
    pub(crate) fn first(&self) -> Option<SlotId> {
        let (level, used) = (0..).zip(self.used).find(|&(_, used)| used != 0)?;
        Some(SlotId::new(level, used.trailing_zeros()))
    }

    #[inline]
    pub(crate) fn is_used(&self, slot: SlotId) -> bool {
        self.slots[slot.index()].first != NONE
    }

    /// Returns a lower bound of the slot's deadlines. The bound is the earliest deadline, unless
    /// that timer has been removed.
    #[inline]
    pub(crate) fn min(&self, slot: SlotId) -> u64 {
        self.slots[slot.index()].min
    }

    /// Adds a timer.
    #[inline]
    pub(crate) fn push(&mut self, id: SlotId, item: Item) -> Place {
        if self.slots[id.index()].is_full() {
            self.add_chunk(id);
        }
        let slot = &mut self.slots[id.index()];
        let place = Place::new(slot.first, slot.len);
        self.chunks[slot.first].items[usize::from(slot.len)] = item;
        slot.len += 1;
        slot.min = slot.min.min(item.at);
        place
    }

    /// Returns the timers that [`pop`](Self::pop) returns next, in reverse order.
    #[inline]
    pub(crate) fn first_chunk(&self, id: SlotId) -> &[Item] {
        let Slot { first, len, .. } = self.slots[id.index()];
        match first {
            NONE => &[],
            _ => &self.chunks[first].items[..usize::from(len)],
        }
    }

    /// Takes any timer out of the slot.
    #[inline]
    pub(crate) fn pop(&mut self, id: SlotId) -> Option<Item> {
        let slot = &mut self.slots[id.index()];
        if slot.first == NONE {
            return None;
        }
        slot.len -= 1;
        let item = self.chunks[slot.first].items[usize::from(slot.len)];
        if slot.len == 0 {
            self.remove_chunk(id);
        }
        Some(item)
    }

    /// Removes a timer. The last timer of its slot, which may be the same timer, moves to the
    /// place. Returns the deadline of the removed timer, and the index of the timer that moved.
    #[inline]
    pub(crate) fn remove(&mut self, place: Place) -> (u64, u32) {
        let slot = self.slot(place);
        let item = self.item(place);
        let last = self.pop(slot).unwrap_or(item);
        self.chunks[place.chunk()].items[place.item()] = last;
        (item.at, last.index)
    }

    /// Returns the timer at a place.
    #[inline]
    pub(crate) fn item(&self, place: Place) -> Item {
        self.chunks[place.chunk()].items[place.item()]
    }

    /// Returns the slot of the timer at a place.
    #[inline]
    pub(crate) fn slot(&self, place: Place) -> SlotId {
        self.chunks[place.chunk()].slot
    }

    /// Changes the deadline of a timer to another deadline of the same slot.
    #[inline]
    pub(crate) fn set(&mut self, place: Place, at: u64) {
        let slot = self.slot(place);
        self.chunks[place.chunk()].items[place.item()].at = at;
        let slot = &mut self.slots[slot.index()];
        slot.min = slot.min.min(at);
    }

    /// Moves all timers to as few chunks as possible, and calls `moved` with each new place.
    pub(crate) fn shrink(&mut self, mut moved: impl FnMut(u32, Place)) {
        let mut old = core::mem::replace(self, Self::new());
        for id in (0..SLOTS).map(SlotId) {
            while let Some(item) = old.pop(id) {
                moved(item.index, self.push(id, item));
            }
        }
    }

    /// Puts a vacant chunk before the other chunks of the slot.
    fn add_chunk(&mut self, id: SlotId) {
        if self.vacant == NONE {
            self.grow();
        }
        let new = self.vacant;
        let chunk = &mut self.chunks[new];
        self.vacant = chunk.next;
        let slot = &mut self.slots[id.index()];
        chunk.next = slot.first;
        chunk.slot = id;
        slot.first = new;
        slot.len = 0;
        self.used[id.level() as usize] |= id.bit();
    }

    /// Makes the first chunk of the slot, which is empty, vacant.
    fn remove_chunk(&mut self, id: SlotId) {
        let slot = &mut self.slots[id.index()];
        let old = slot.first;
        let chunk = &mut self.chunks[old];
        slot.first = chunk.next;
        slot.len = IN_CHUNK;
        chunk.next = self.vacant;
        self.vacant = old;
        if slot.first == NONE {
            *slot = Slot::EMPTY;
            self.used[id.level() as usize] &= !id.bit();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let range = self
            .chunks
            .grow(1 << (u32::BITS - ITEM_BITS), |index| Chunk {
                items: [Item { at: 0, index: 0 }; IN_CHUNK as usize],
                next: index + 1,
                slot: SlotId::NONE,
            });
        self.chunks[range.end - 1].next = NONE;
        self.vacant = range.start;
    }
}

impl Slot {
    /// A slot without chunks. Its length equals the length of a full chunk, so that the next timer
    /// adds a chunk.
    const EMPTY: Self = Self {
        min: u64::MAX,
        first: NONE,
        len: IN_CHUNK,
    };

    #[inline]
    fn is_full(&self) -> bool {
        self.len == IN_CHUNK
    }
}

impl SlotId {
    /// A slot without timers. The last level uses its second slot alone.
    pub(crate) const NONE: Self = Self((LEVELS - 1) << SLOT_BITS);

    /// Returns the slot of a digit on a level.
    #[inline]
    pub(crate) fn new(level: u32, digit: u32) -> Self {
        Self(level << SLOT_BITS | digit)
    }

    #[inline]
    pub(crate) fn level(self) -> u32 {
        self.0 / IN_LEVEL
    }

    #[inline]
    pub(crate) fn digit(self) -> u32 {
        self.0 % IN_LEVEL
    }

    #[inline]
    fn index(self) -> usize {
        self.0 as usize
    }

    #[inline]
    fn bit(self) -> u64 {
        1 << self.digit()
    }
}

impl Place {
    #[inline]
    fn new(chunk: u32, item: u16) -> Self {
        Self(chunk << ITEM_BITS | u32::from(item))
    }

    #[inline]
    fn chunk(self) -> u32 {
        self.0 >> ITEM_BITS
    }

    #[inline]
    fn item(self) -> usize {
        (self.0 % (1 << ITEM_BITS)) as usize
    }
}
