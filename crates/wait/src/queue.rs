//! A queue of waiters, each with an item. Its owner guards it by a lock.
//!
//! **Problem.** Waiters leave from the middle, come back to the front, and may be claimed by
//! another queue at any moment. All of them may be woken at once.
//!
//! **Protocol.** The entries are in one [`WaitTable`], and linked to a list. The owner of an entry
//! knows its [`WaiterKey`], and removes the entry at the end of its wait, unless `pop` has removed
//! it. A claimer may find an entry whose waiter another queue has claimed. The claimer takes the
//! entry out of the list, and leaves it in the table for the entry's owner. So no item is dropped
//! under the lock.

use crate::waiter::Waiter;
use ganger_sync::{WaitList, WaitTable, for_each_past_panics};
use std::fmt;
use std::mem;
use std::sync::Arc;

/// Waiters in the order of their arrival; a waiter may also come back to the front.
///
/// The owner of the queue guards it by a lock. No method runs foreign code, and the caller decides
/// when the returned items are dropped.
pub struct WaitQueue<T> {
    table: WaitTable<Stamped<T>>,
    list: WaitList,
    /// The stamp of the next entry.
    stamp: u64,
}

struct Stamped<T> {
    stamp: u64,
    entry: WaiterEntry<T>,
}

/// A waiter in a queue.
#[derive(Debug)]
pub struct WaiterEntry<T> {
    /// The waiter.
    pub waiter: Arc<Waiter>,
    /// The case as which this queue claims the waiter.
    pub case: u32,
    /// The item of the waiter.
    pub item: T,
}

/// The key of an entry, for its owner. After the entry has left, it leads to no other entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaiterKey {
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
            table: WaitTable::new(),
            list: WaitList::new(),
            stamp: 0,
        }
    }

    /// Returns the count of entries in the list. Counts entries whose waiter was claimed elsewhere
    /// or has left, until they are taken out of the list. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether the list is empty. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Puts a waiter at the end of the list, to be claimed as `case`. O(1), amortised.
    pub fn push_back(&mut self, waiter: Arc<Waiter>, case: u32, item: T) -> WaiterKey {
        let (stamp, stamped) = self.stamped(WaiterEntry { waiter, case, item });
        let index = self.table.push_back(&mut self.list, stamped);
        WaiterKey { index, stamp }
    }

    /// Puts a waiter at the front of the list, to be claimed as `case`. O(1), amortised.
    pub fn push_front(&mut self, waiter: Arc<Waiter>, case: u32, item: T) -> WaiterKey {
        let (stamp, stamped) = self.stamped(WaiterEntry { waiter, case, item });
        let index = self.table.push_front(&mut self.list, stamped);
        WaiterKey { index, stamp }
    }

    /// Takes an entry out, in the list or not. Returns `None` if `pop`, `take_all` or an earlier
    /// call has taken it out. O(1).
    ///
    /// If the first entry's item kept the waiters behind it waiting, the caller serves them now.
    pub fn remove(&mut self, key: WaiterKey) -> Option<WaiterEntry<T>> {
        self.get(key)?;
        Some(self.table.remove(&mut self.list, key.index)?.entry)
    }

    /// Claims the first waiter that still waits, and takes its entry out. O(1) and a CAS,
    /// amortised. The caller owes it `wake`, without the lock.
    #[must_use = "a waiter that was claimed is woken"]
    pub fn pop(&mut self) -> Option<WaiterEntry<T>> {
        self.pop_if(|_| true)
    }

    /// Pops as [`pop`](Self::pop) does, but claims the waiter as `case`, not as the case of its
    /// entry.
    #[must_use = "a waiter that was claimed is woken"]
    pub fn pop_as(&mut self, case: u32) -> Option<WaiterEntry<T>> {
        let key = self.claim_first(|_| true, Some(case), false)?;
        self.remove(key)
    }

    /// Pops as [`pop_as`](Self::pop_as) does, but the last waiter.
    #[must_use = "a waiter that was claimed is woken"]
    pub fn pop_last_as(&mut self, case: u32) -> Option<WaiterEntry<T>> {
        let key = self.claim_first(|_| true, Some(case), true)?;
        self.remove(key)
    }

    /// Pops as [`pop`](Self::pop) does, but returns `None` if `is_right` does not hold for the
    /// first item.
    #[must_use = "a waiter that was claimed is woken"]
    pub fn pop_if(&mut self, is_right: impl FnMut(&T) -> bool) -> Option<WaiterEntry<T>> {
        let key = self.claim_if(is_right)?;
        self.remove(key)
    }

    /// Claims the first waiter that still waits, if `is_right` holds for its item. The entry
    /// leaves the list, and stays in the table until its owner [removes](Self::remove) it. By
    /// [`get_mut`](Self::get_mut) the claimer takes the item's value, or leaves a value in the
    /// item. The caller owes the waiter `wake`, without the lock.
    #[must_use = "a waiter that was claimed is woken"]
    pub fn claim_if(&mut self, is_right: impl FnMut(&T) -> bool) -> Option<WaiterKey> {
        self.claim_first(is_right, None, false)
    }

    fn claim_first(
        &mut self,
        mut is_right: impl FnMut(&T) -> bool,
        case: Option<u32>,
        from_the_end: bool,
    ) -> Option<WaiterKey> {
        loop {
            let index = if from_the_end {
                self.list.last()
            } else {
                self.list.first()
            }?;
            let &Stamped { stamp, ref entry } = self.table.get(index)?;
            if !is_right(&entry.item) {
                return None;
            }
            let is_claimed = entry.waiter.claim(case.unwrap_or(entry.case));
            self.table.unlink(&mut self.list, index);
            if is_claimed {
                return Some(WaiterKey { index, stamp });
            }
        }
    }

    /// Returns the entry at a key, in the list or not.
    #[must_use]
    pub fn get(&self, key: WaiterKey) -> Option<&WaiterEntry<T>> {
        let stamped = self.table.get(key.index)?;
        (stamped.stamp == key.stamp).then_some(&stamped.entry)
    }

    /// Returns the entry as [`get`](Self::get) does, to change the item.
    #[must_use]
    pub fn get_mut(&mut self, key: WaiterKey) -> Option<&mut WaiterEntry<T>> {
        let stamped = self.table.get_mut(key.index)?;
        (stamped.stamp == key.stamp).then_some(&mut stamped.entry)
    }

    /// Takes the whole list out, to claim and wake its waiters without the lock, as `case` if
    /// given. O(1) if all entries of the table are in the list.
    pub fn take_all(&mut self, case: Option<u32>) -> All<T> {
        if self.table.len() == self.list.len() {
            let stamp = self.stamp;
            let new = Self {
                stamp,
                ..Self::new()
            };
            return All(mem::replace(self, new), case);
        }
        let mut all = Self::new();
        while let Some(first) = self.list.first() {
            if let Some(stamped) = self.table.remove(&mut self.list, first) {
                let WaiterEntry { waiter, case, item } = stamped.entry;
                all.push_back(waiter, case, item);
            }
        }
        All(all, case)
    }

    fn stamped(&mut self, entry: WaiterEntry<T>) -> (u64, Stamped<T>) {
        let stamp = self.stamp;
        self.stamp += 1;
        (stamp, Stamped { stamp, entry })
    }
}

impl<T> fmt::Debug for WaitQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitQueue")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// A whole list, taken out. The iterator claims each waiter at its turn, and the caller wakes it.
/// A drop claims and wakes the remaining waiters, even if a wake-up panics.
#[must_use = "dropping it wakes them all"]
#[derive(Debug)]
pub struct All<T>(WaitQueue<T>, Option<u32>);

impl<T> Iterator for All<T> {
    type Item = WaiterEntry<T>;

    fn next(&mut self) -> Option<WaiterEntry<T>> {
        match self.1 {
            None => self.0.pop(),
            Some(case) => self.0.pop_as(case),
        }
    }
}

impl<T> Drop for All<T> {
    fn drop(&mut self) {
        for_each_past_panics(self, |entry| entry.waiter.wake());
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
