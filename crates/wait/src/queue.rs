//! A queue of waiters, each with an item. Its owner guards it by a lock.
//!
//! **Problem.** Waiters leave from the middle, come back to the front, and may be chosen by another
//! queue at any moment. All of them may be woken at once.
//!
//! **Rejected.** A list through the waiters: a waiter in several queues needs as many links. A
//! `VecDeque`: leaving from the middle is O(n).
//!
//! **Protocol.** The entries are in a table, and linked to a line. The owner of an entry knows its
//! [`Place`], and removes the entry at the end of its wait, unless `pop` has removed it. A chooser
//! may find an entry whose waiter another queue has chosen. It takes the entry out of the line, and
//! leaves it in the table for the entry's owner. So no item is dropped under the lock.

use crate::Waiter;
use ganger_sync::Table;
use std::fmt;
use std::mem;
use std::sync::Arc;

/// No entry.
const NONE: u32 = u32::MAX;

/// Waiters in the order of their arrival; a waiter may also come back to the front.
///
/// The owner of the queue guards it by a lock. No method runs foreign code, and the caller decides
/// when the returned items are dropped.
pub struct WaitQueue<T> {
    slots: Table<Slot<T>>,
    first: u32,
    last: u32,
    /// The count of entries in the line.
    len: usize,
    /// The stamp of the next entry.
    stamp: u64,
}

struct Slot<T> {
    /// The stamp of the entry.
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
    /// The case as which this queue chooses the waiter.
    pub case: u32,
    /// The item of the waiter.
    pub item: T,
}

/// The place of an entry, for its owner. After the entry has left, it leads to no other entry.
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
    /// Creates an empty queue, without memory.
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

    /// Returns the count of entries in the line. Counts entries whose waiter was chosen elsewhere
    /// or has left, until they are taken out of the line. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the line is empty. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts a waiter at the end of the line, to be chosen as `case`. O(1), amortised.
    pub fn push_back(&mut self, waiter: Arc<Waiter>, case: u32, item: T) -> Place {
        let place = self.insert(Entry { waiter, case, item });
        self.link(place.index, self.last, NONE);
        place
    }

    /// Puts a waiter at the front of the line, to be chosen as `case`. O(1), amortised.
    pub fn push_front(&mut self, waiter: Arc<Waiter>, case: u32, item: T) -> Place {
        let place = self.insert(Entry { waiter, case, item });
        self.link(place.index, NONE, self.first);
        place
    }

    /// Takes an entry out, in the line or not. Returns `None` if `pop`, `take_all` or an earlier
    /// call has taken it out. O(1).
    ///
    /// If the first entry's item kept the waiters behind it waiting, the caller serves them now.
    pub fn remove(&mut self, place: Place) -> Option<Entry<T>> {
        self.slot(place)?;
        self.unlink(place.index);
        Some(self.slots.remove(place.index)?.entry)
    }

    /// Chooses the first waiter that still waits, and takes its entry out. O(1) and a CAS,
    /// amortised. The caller owes it `tell`, without the lock.
    #[must_use = "a waiter that was chosen is told"]
    pub fn pop(&mut self) -> Option<Entry<T>> {
        self.pop_if(|_| true)
    }

    /// As [`pop`](Self::pop), but chooses the waiter as `case`, not as the case of its entry.
    #[must_use = "a waiter that was chosen is told"]
    pub fn pop_as(&mut self, case: u32) -> Option<Entry<T>> {
        let place = self.choose_first(|_| true, Some(case), false)?;
        self.remove(place)
    }

    /// As [`pop_as`](Self::pop_as), for the last waiter.
    #[must_use = "a waiter that was chosen is told"]
    pub fn pop_last_as(&mut self, case: u32) -> Option<Entry<T>> {
        let place = self.choose_first(|_| true, Some(case), true)?;
        self.remove(place)
    }

    /// As [`pop`](Self::pop), but returns `None` if `is_right` does not hold for the first item.
    #[must_use = "a waiter that was chosen is told"]
    pub fn pop_if(&mut self, is_right: impl FnMut(&T) -> bool) -> Option<Entry<T>> {
        let place = self.choose_if(is_right)?;
        self.remove(place)
    }

    /// Chooses the first waiter that still waits, if `is_right` holds for its item. The entry
    /// leaves the line, and stays in the table until its owner [removes](Self::remove) it. By
    /// [`get_mut`](Self::get_mut) the chooser takes the item's value, or leaves a value in the
    /// item. The caller owes the waiter `tell`, without the lock.
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

    /// Returns the entry at a place, in the line or not.
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

    /// Takes the whole line out, to choose and tell its waiters without the lock, as `case` if
    /// given. O(1) if all entries of the table are in the line.
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

    /// Puts the slot into the line, between two adjacent slots.
    fn link(&mut self, index: u32, before: u32, next: u32) {
        if let Some(slot) = self.slots.get_mut(index) {
            (slot.before, slot.next, slot.is_in_line) = (before, next, true);
        }
        self.join(before, index);
        self.join(index, next);
        self.len += 1;
    }

    /// Takes the slot out of the line, if it is in the line.
    fn unlink(&mut self, index: u32) {
        if let Some(slot) = self.slots.get_mut(index)
            && mem::take(&mut slot.is_in_line)
        {
            let (before, next) = (slot.before, slot.next);
            self.join(before, next);
            self.len -= 1;
        }
    }

    /// Links two slots; `NONE` is an end of the line.
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

/// A whole line, taken out. The iterator chooses each waiter at its turn, and the caller tells it.
/// A drop chooses and tells the remaining waiters, even if a wake-up panics.
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
