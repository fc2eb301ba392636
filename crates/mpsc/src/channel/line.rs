//! The line of those that wait, in the order in which they came.
//!
//! **Problem.** Threads and tasks wait for the same thing, may give up, and are woken one by one.
//! A thread that may have to wake one looks often, and mostly there is none.
//!
//! **Protocol.** Entries are in a list, under a lock, and a count of those to be woken is beside
//! it. A waiter enters, and then looks for what it waits for. A waker makes that be there, and then
//! looks at the count; each has a full fence between its two steps. An entry that has been woken
//! stays where it is until its owner leaves, or waits again.

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
#[derive(Debug)]
pub(super) struct Ticket(u64);

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

    /// Puts a waiter at the end of the line, or where its ticket says. A waker is foreign code,
    /// which runs without the lock, also where it is cloned and dropped.
    pub(super) fn enter(&self, ticket: Option<Ticket>, waker: &Waker) -> Ticket {
        let waker = waker.clone();
        let mut entries = lock(&self.entries);
        let ticket = ticket.map_or(entries.next, |ticket| ticket.0);
        let old = match entries.find(ticket) {
            Ok(place) => entries.list[place].waker.replace(waker),
            Err(_) => {
                entries.next += 1;
                let waker = Some(waker);
                entries.list.push_back(Entry { ticket, waker });
                None
            }
        };
        if old.is_none() {
            self.count(&entries, 1);
        }
        drop(entries);
        drop(old);
        Ticket(ticket)
    }

    /// Takes a waiter out of the line. Returns whether it has been woken since it entered.
    pub(super) fn leave(&self, ticket: Ticket) -> bool {
        let mut entries = lock(&self.entries);
        let place = entries.find(ticket.0).ok();
        let entry = place.and_then(|place| entries.list.remove(place));
        let waker = entry.and_then(|entry| entry.waker);
        if waker.is_some() {
            self.count(&entries, -1);
        }
        drop(entries);
        waker.is_none()
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

    /// Wakes all that are to be woken.
    pub(super) fn wake_all(&self) {
        let mut entries = lock(&self.entries);
        let all = entries
            .list
            .iter_mut()
            .filter_map(|entry| entry.waker.take());
        let all: Vec<_> = all.collect();
        // Ordering: Relaxed, because the lock orders it.
        self.waiting.store(0, Ordering::Relaxed);
        drop(entries);
        all.into_iter().for_each(Waker::wake);
    }

    /// How many are to be woken.
    #[cfg(all(test, not(ganger_loom)))]
    pub(super) fn len(&self) -> usize {
        // Ordering: Relaxed, because only the number counts.
        self.waiting.load(Ordering::Relaxed)
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

impl Entries {
    fn find(&self, ticket: u64) -> Result<usize, usize> {
        self.list
            .binary_search_by_key(&ticket, |entry| entry.ticket)
    }
}
