//! A queue of waiters, each with an item. Its owner has it under a lock.
//!
//! **Problem.** Waiters leave from the middle, come back to the front, and may be chosen by another
//! queue at any moment. All of them may be woken at once.
//!
//! **Rejected.** A list through the waiters: one that is in several queues needs as many links. A
//! `VecDeque`: to leave from the middle is O(n).
//!
//! **Protocol.** Entries are in a table, and linked. The owner of an entry knows its [`Place`], and
//! removes the entry when its wait is over, whatever ended that. `pop` has removed it already. An
//! entry whose waiter another queue has chosen is taken out of the line by the chooser that finds
//! it, and stays in the table until its owner removes it. So no item is dropped under the lock.

use crate::Waiter;
use ganger_sync::Table;
use std::fmt;
use std::mem;
use std::sync::Arc;

/// No entry.
const NONE: u32 = u32::MAX;

/// Waiters in the order in which they came, but for those that came back to the front.
///
/// The owner of the queue has it under a lock. No method runs foreign code, but for drops of items
/// that the caller is given.
pub struct WaitQueue<T> {
    slots: Table<Slot<T>>,
    first: u32,
    last: u32,
    /// How many are in the line.
    len: usize,
    /// Of the next entry.
    stamp: u64,
}

struct Slot<T> {
    /// Of the entry.
    stamp: u64,
    before: u32,
    next: u32,
    is_in_line: bool,
    entry: Entry<T>,
}

/// A waiter in a queue.
#[derive(Debug)]
pub struct Entry<T> {
    /// The waiter.
    pub waiter: Arc<Waiter>,
    /// What it is chosen as here.
    pub case: u32,
    /// What it has brought along.
    pub item: T,
}

/// Where an entry is, for its owner. It leads to no other entry when that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    index: u32,
    stamp: u64,
}

impl<T> Default for WaitQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> WaitQueue<T> {
    /// An empty queue, without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slots: Table::new(),
            first: NONE,
            last: NONE,
            len: 0,
            stamp: 0,
        }
    }

    /// How many are in the line, with those that have been chosen elsewhere or have left, and have
    /// not been removed. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the line is empty. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts a waiter at the end of the line, as that case. O(1), amortised.
    pub fn push_back(&mut self, waiter: Arc<Waiter>, case: u32, item: T) -> Place {
        let place = self.insert(Entry { waiter, case, item });
        self.link(place.index, self.last, NONE);
        place
    }

    /// Puts a waiter at the front of the line, as that case. O(1), amortised.
    pub fn push_front(&mut self, waiter: Arc<Waiter>, case: u32, item: T) -> Place {
        let place = self.insert(Entry { waiter, case, item });
        self.link(place.index, NONE, self.first);
        place
    }

    /// Takes an entry out, in the line or not. `None` when `pop`, `take_all` or this has taken it
    /// out already. O(1).
    ///
    /// Where an item of the first may have kept others waiting, the caller serves them now.
    pub fn remove(&mut self, place: Place) -> Option<Entry<T>> {
        self.slot(place)?;
        self.unlink(place.index);
        Some(self.slots.remove(place.index)?.entry)
    }

    /// Chooses the first waiter that can be chosen, and takes its entry out. O(1) and one CAS,
    /// amortised. The caller owes `tell`, without the lock.
    #[must_use = "a waiter that was chosen is told"]
    pub fn pop(&mut self) -> Option<Entry<T>> {
        self.pop_if(|_| true)
    }

    /// As [`pop`](Self::pop), but the waiter is chosen as `case`, whatever it is in the queue as.
    #[must_use = "a waiter that was chosen is told"]
    pub fn pop_as(&mut self, case: u32) -> Option<Entry<T>> {
        let place = self.choose_first(|_| true, Some(case), false)?;
        self.remove(place)
    }

    /// As [`pop_as`](Self::pop_as), of the last waiter.
    #[must_use = "a waiter that was chosen is told"]
    pub fn pop_last_as(&mut self, case: u32) -> Option<Entry<T>> {
        let place = self.choose_first(|_| true, Some(case), true)?;
        self.remove(place)
    }

    /// As [`pop`](Self::pop), but none when `is_right` does not hold for the first item.
    #[must_use = "a waiter that was chosen is told"]
    pub fn pop_if(&mut self, is_right: impl FnMut(&T) -> bool) -> Option<Entry<T>> {
        let place = self.choose_if(is_right)?;
        self.remove(place)
    }

    /// Chooses the first waiter that can be chosen, if `is_right` holds for its item. Its entry is
    /// no longer in the line, and stays until its owner [removes](Self::remove) it: there the
    /// chooser finds or leaves what goes with the choice, by [`get_mut`](Self::get_mut). The caller
    /// owes `tell`, without the lock.
    #[must_use = "a waiter that was chosen is told"]
    pub fn choose_if(&mut self, is_right: impl FnMut(&T) -> bool) -> Option<Place> {
        self.choose_first(is_right, None, false)
    }

    fn choose_first(
        &mut self,
        mut is_right: impl FnMut(&T) -> bool,
        case: Option<u32>,
        from_the_end: bool,
    ) -> Option<Place> {
        loop {
            let index = if from_the_end { self.last } else { self.first };
            let slot = self.slots.get(index)?;
            let (entry, stamp) = (&slot.entry, slot.stamp);
            if !is_right(&entry.item) {
                return None;
            }
            let is_chosen = entry.waiter.choose(case.unwrap_or(entry.case));
            self.unlink(index);
            if is_chosen {
                return Some(Place { index, stamp });
            }
        }
    }

    /// The entry at that place, in the line or not.
    #[must_use]
    pub fn get(&self, place: Place) -> Option<&Entry<T>> {
        let slot = self.slots.get(place.index)?;
        (slot.stamp == place.stamp).then_some(&slot.entry)
    }

    /// As [`get`](Self::get), to change the item.
    #[must_use]
    pub fn get_mut(&mut self, place: Place) -> Option<&mut Entry<T>> {
        Some(&mut self.slot(place)?.entry)
    }

    /// Takes the whole line out, to choose and tell each without the lock, as `case` if that is
    /// given. O(1) where no entry stays for its owner.
    pub fn take_all(&mut self, case: Option<u32>) -> All<T> {
        if self.slots.len() == self.len {
            let stamp = self.stamp;
            let new = Self {
                stamp,
                ..Self::new()
            };
            return All(mem::replace(self, new), case);
        }
        let mut all = Self::new();
        while let Some(slot) = self.slots.get(self.first) {
            let place = Place {
                index: self.first,
                stamp: slot.stamp,
            };
            if let Some(Entry { waiter, case, item }) = self.remove(place) {
                all.push_back(waiter, case, item);
            }
        }
        All(all, case)
    }

    fn slot(&mut self, place: Place) -> Option<&mut Slot<T>> {
        let slot = self.slots.get_mut(place.index)?;
        (slot.stamp == place.stamp).then_some(slot)
    }

    fn insert(&mut self, entry: Entry<T>) -> Place {
        let stamp = self.stamp;
        self.stamp += 1;
        let index = self.slots.insert(Slot {
            stamp,
            before: NONE,
            next: NONE,
            is_in_line: false,
            entry,
        });
        Place { index, stamp }
    }

    /// The slot goes into the line, between two neighbours of each other.
    fn link(&mut self, index: u32, before: u32, next: u32) {
        if let Some(slot) = self.slots.get_mut(index) {
            (slot.before, slot.next, slot.is_in_line) = (before, next, true);
        }
        self.join(before, index);
        self.join(index, next);
        self.len += 1;
    }

    /// The slot leaves the line, if it is there.
    fn unlink(&mut self, index: u32) {
        if let Some(slot) = self.slots.get_mut(index)
            && mem::take(&mut slot.is_in_line)
        {
            let (before, next) = (slot.before, slot.next);
            self.join(before, next);
            self.len -= 1;
        }
    }

    /// One comes after the other; an end of the line is none.
    fn join(&mut self, before: u32, next: u32) {
        match self.slots.get_mut(before) {
            Some(slot) => slot.next = next,
            None => self.first = next,
        }
        match self.slots.get_mut(next) {
            Some(slot) => slot.before = before,
            None => self.last = before,
        }
    }
}

impl<T> fmt::Debug for WaitQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitQueue")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// A whole line that was taken out. Each waiter is chosen when it is its turn: the caller tells
/// it. Those that are left when this is dropped are chosen and told then, also when one of the
/// wake-ups panics.
#[must_use = "dropping it tells them all"]
#[derive(Debug)]
pub struct All<T>(WaitQueue<T>, Option<u32>);

impl<T> Iterator for All<T> {
    type Item = Entry<T>;

    fn next(&mut self) -> Option<Entry<T>> {
        match self.1 {
            None => self.0.pop(),
            Some(case) => self.0.pop_as(case),
        }
    }
}

impl<T> Drop for All<T> {
    fn drop(&mut self) {
        struct Rest<'a, T>(&'a mut All<T>);
        impl<T> Rest<'_, T> {
            fn tell(&mut self) {
                for entry in self.0.by_ref() {
                    entry.waiter.tell();
                }
            }
        }
        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                self.tell();
            }
        }
        Rest(self).tell();
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
