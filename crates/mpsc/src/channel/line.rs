//! The line of those that wait, in the order in which they came.
//!
//! **Problem.** Threads and tasks wait for the same thing, may give up, and are woken one by one.
//! A thread that may have to wake one looks often, and mostly there is none.
//!
//! **Protocol.** Entries are in a list, under a lock, and a count of those to be woken is beside
//! it. A waiter enters, and then looks for what it waits for. A waker makes that be there, and then
//! looks at the count; each has a full fence between its two steps. An entry that has been woken
//! stays where it is until its owner leaves, or waits again.
//!
//! **Foreign code.** Wakers are cloned, woken and dropped without the lock, and may panic: no
//! entry loses its ticket by that, and no waiter that is to be woken is left out.

use ganger_sync::Parker;
use ganger_sync::atomic::{AtomicUsize, Ordering};
use ganger_sync::sync::{Mutex, MutexGuard, lock};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// Wakes a thread that waits, which sleeps in the parker. A token that an earlier wait has left
/// ends a sleep early.
#[derive(Default)]
pub(super) struct ParkerWaker(pub(super) Parker);

impl Wake for ParkerWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The place of a waiter in the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket(u64);

/// How many entries the line may keep memory for.
const KEPT: usize = 64;

struct Entry {
    ticket: u64,
    /// None once the waiter has been woken.
    waker: Option<Waker>,
}

#[derive(Default)]
struct Entries {
    next: u64,
    /// In the order of their tickets.
    list: VecDeque<Entry>,
}

/// The line.
pub(super) struct Line {
    /// How many entries are to be woken. Written under the lock; wakers read it without.
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

    /// Puts a waiter at the end of the line, or where its ticket says, which it has from here on.
    pub(super) fn enter(&self, ticket: &mut Option<Ticket>, waker: &Waker) {
        let waker = waker.clone();
        let mut entries = lock(&self.entries);
        let Ticket(number) = *ticket.get_or_insert(Ticket(entries.next));
        let old = match entries.find(number) {
            Ok(place) => entries.list[place].waker.replace(waker),
            Err(_) => {
                entries.next += 1;
                entries.list.push_back(Entry {
                    ticket: number,
                    waker: Some(waker),
                });
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
        let place = entries.find(ticket.0).ok()?;
        let waker = entries.list.remove(place)?.waker;
        if waker.is_some() {
            self.count(&entries, -1);
        }
        let (len, room) = (entries.list.len(), entries.list.capacity());
        if room > KEPT && len < room / 4 {
            // What a burst has left.
            entries.list.shrink_to(2 * len);
        }
        waker
    }

    /// Wakes the waiter that is to be woken and has waited longest, if there is one. O(1) if there
    /// is none.
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
        let first = entries.list.iter_mut().find_map(|entry| entry.waker.take());
        if first.is_some() {
            self.count(&entries, -1);
        }
        drop(entries);
        if let Some(waker) = first {
            waker.wake();
        }
    }

    /// Wakes all that are to be woken, also if one of the wakers panics.
    pub(super) fn wake_all(&self) {
        let mut entries = lock(&self.entries);
        let all = entries
            .list
            .iter_mut()
            .filter_map(|entry| entry.waker.take());
        let mut rest = Rest(all.collect::<Vec<_>>().into_iter());
        // Ordering: Relaxed, because the lock orders it.
        self.waiting.store(0, Ordering::Relaxed);
        drop(entries);
        rest.wake();
    }

    /// How many are to be woken.
    pub(super) fn len(&self) -> usize {
        // Ordering: Relaxed, because only the number counts.
        self.waiting.load(Ordering::Relaxed)
    }

    /// How many entries it has memory for.
    #[cfg(all(test, not(ganger_loom)))]
    pub(super) fn room(&self) -> usize {
        lock(&self.entries).list.capacity()
    }

    /// Changes the count, under the lock.
    fn count(&self, _entries: &MutexGuard<'_, Entries>, by: isize) {
        // Ordering: Relaxed, because the lock orders the changes, and each waiter's fence orders
        // its own.
        let waiting = self.waiting.load(Ordering::Relaxed);
        self.waiting
            .store(waiting.wrapping_add_signed(by), Ordering::Relaxed);
    }
}

/// Those that are still to be woken, which a panic does not keep from it.
struct Rest(std::vec::IntoIter<Waker>);

impl Rest {
    fn wake(&mut self) {
        self.0.by_ref().for_each(Waker::wake);
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.wake();
    }
}

impl Entries {
    fn find(&self, ticket: u64) -> Result<usize, usize> {
        self.list
            .binary_search_by_key(&ticket, |entry| entry.ticket)
    }
}
