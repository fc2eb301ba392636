//! The line of waiters, in the order in which they came.
//!
//! **Problem.** Threads and tasks wait for the same resource, may give up, and are woken one by
//! one. A thread that may have to wake a waiter checks often, and mostly finds none.
//!
//! **Protocol.** Entries are in a [`WaitTable`], under a lock, with a count of the waiters still to
//! be woken. A waiter enters, and then checks its condition. A waker makes the condition true, and
//! then reads the count; each makes a full fence between its two steps. An entry that has been
//! woken stays in place until its owner leaves, or waits again.
//!
//! **Foreign code.** Wakers are cloned, woken and dropped without the lock, and may panic: a panic
//! neither loses an entry's ticket nor leaves out another waiter.

use ganger_sync::atomic::{AtomicUsize, Ordering};
use ganger_sync::sync::{Mutex, MutexGuard, lock};
use ganger_sync::{WaitList, WaitTable, wake_all};
use std::task::Waker;

/// The place of a waiter in the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket(u32);

#[derive(Default)]
struct Entries {
    /// An entry is `None` once its waiter has been woken.
    table: WaitTable<Option<Waker>>,
    list: WaitList,
}

/// The line.
pub(super) struct Line {
    /// How many entries still wait to be woken. Written under the lock; wakers read it without.
    waiting: AtomicUsize,
    entries: Mutex<Entries>,
}

impl Line {
    pub(super) fn new() -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            entries: Mutex::new(Entries::default()),
        }
    }

    /// Adds a waiter at the end of the line, and sets its ticket; a waiter with a ticket keeps its
    /// place.
    pub(super) fn enter(&self, ticket: &mut Option<Ticket>, waker: &Waker) {
        let waker = waker.clone();
        let mut entries = lock(&self.entries);
        let Entries { table, list } = &mut *entries;
        let old = match ticket.and_then(|Ticket(number)| table.get_mut(number)) {
            Some(entry) => entry.replace(waker),
            None => {
                *ticket = Some(Ticket(table.push_back(list, Some(waker))));
                None
            }
        };
        if old.is_none() {
            self.count(&entries, 1);
        }
        drop(entries);
        drop(old);
    }

    /// Takes a waiter out of the line. Returns its waker, unless it has been woken.
    #[must_use = "a waker is dropped when all else is done"]
    pub(super) fn leave(&self, ticket: Ticket) -> Option<Waker> {
        let mut entries = lock(&self.entries);
        let Entries { table, list } = &mut *entries;
        let waker = table.remove(list, ticket.0)?;
        if waker.is_some() {
            self.count(&entries, -1);
        }
        waker
    }

    /// Wakes the longest-waiting entry that has not been woken, if any. O(1) if none waits.
    #[inline]
    pub(super) fn wake_next(&self) {
        // Ordering: Relaxed, because the caller's fence orders it.
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.wake_first();
        }
    }

    #[cold]
    fn wake_first(&self) {
        let mut entries = lock(&self.entries);
        let Entries { table, list } = &mut *entries;
        let first = table.find_map(list, Option::take);
        if first.is_some() {
            self.count(&entries, -1);
        }
        drop(entries);
        if let Some(waker) = first {
            waker.wake();
        }
    }

    /// Wakes all entries that have not been woken, even if a waker panics.
    pub(super) fn wake_all(&self) {
        let mut entries = lock(&self.entries);
        let Entries { table, list } = &mut *entries;
        let mut wakers = Vec::new();
        table.find_map(list, |entry| -> Option<()> {
            wakers.extend(entry.take());
            None
        });
        // Ordering: Relaxed, because the lock orders it.
        self.waiting.store(0, Ordering::Relaxed);
        drop(entries);
        wake_all(wakers);
    }

    /// Returns how many entries still wait to be woken.
    pub(super) fn len(&self) -> usize {
        // Ordering: Relaxed, because only the number counts.
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns for how many entries the line has memory.
    #[cfg(all(test, not(ganger_loom)))]
    pub(super) fn room(&self) -> usize {
        lock(&self.entries).table.capacity()
    }

    /// Changes the count, under the lock.
    fn count(&self, _entries: &MutexGuard<'_, Entries>, by: isize) {
        // Ordering: Relaxed, because the lock orders the changes, and each waiter's fence orders
        // its own change.
        let waiting = self.waiting.load(Ordering::Relaxed);
        self.waiting
            .store(waiting.wrapping_add_signed(by), Ordering::Relaxed);
    }
}
