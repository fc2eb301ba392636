//! The account of a stress test: each item ends exactly once, and as it was made.
//!
//! What is wrong is written down and reported when all threads have ended. A destructor that
//! panicked instead would say less: the process aborts when a panic meets another.

use std::fmt::Write as _;
use std::mem;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most ids, or other faults, that a report lists.
const MOST_LISTED: usize = 20;

/// How often each item has ended.
pub(crate) struct Ledger {
    ends: Box<[AtomicU8]>,
    faults: Mutex<Vec<String>>,
}

/// An item whose destructor enters it into the ledger. Its identity is in it and, the other way
/// round, on the heap, so that a torn or stale copy shows.
pub(crate) struct Item<'a> {
    id: usize,
    /// There until the destructor.
    inverse: Option<Box<usize>>,
    ledger: &'a Ledger,
}

impl Ledger {
    /// For items with ids below `items`.
    pub(crate) fn new(items: usize) -> Self {
        Self {
            ends: (0..items).map(|_| AtomicU8::new(0)).collect(),
            faults: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn item(&self, id: usize) -> Item<'_> {
        Item {
            id,
            inverse: Some(Box::new(!id)),
            ledger: self,
        }
    }

    /// Writes down that an item has ended. Returns whether that was its first end.
    pub(crate) fn enter(&self, id: usize) -> bool {
        let Some(ends) = self.ends.get(id) else {
            self.fault(format!("an item with id {id}, which nobody has made"));
            return false;
        };
        // Ordering: Relaxed, because joining the threads orders it before the account is read.
        ends.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// Writes down what else is wrong.
    pub(crate) fn fault(&self, what: impl Into<String>) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        // One more than is listed shows that the list is not all of it.
        if faults.len() <= MOST_LISTED {
            faults.push(what.into());
        }
    }

    /// Whether every item has ended; `seen` is the caller's, 0 at first, and saves it from looking
    /// at the same items again.
    pub(crate) fn is_complete(&self, seen: &mut usize) -> bool {
        // Ordering: Relaxed, because it only tells a thief when to stop.
        let has_ended = |ends: &AtomicU8| ends.load(Ordering::Relaxed) > 0;
        *seen += self.ends[*seen..]
            .iter()
            .take_while(|ends| has_ended(ends))
            .count();
        *seen == self.ends.len()
    }

    /// What is wrong, when all threads have ended and the first `made` items have been made.
    pub(crate) fn settle(&self, made: usize) -> Result<(), String> {
        let mut report = String::new();
        // Ordering: Relaxed, because all threads have been joined.
        let ended = |wanted: fn(u8) -> bool| {
            let all = self.ends.iter().take(made).enumerate();
            all.filter(move |(_, ends)| wanted(ends.load(Ordering::Relaxed)))
                .map(|(id, _)| id.to_string())
        };
        list(&mut report, "lost", ended(|ends| ends == 0));
        list(&mut report, "more than once", ended(|ends| ends > 1));
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        list(&mut report, "other faults", faults.iter().cloned());
        if report.is_empty() {
            Ok(())
        } else {
            Err(report)
        }
    }

    /// Fails if anything is wrong, all items having been made.
    pub(crate) fn assert_settled(&self, seed: u64) {
        if let Err(report) = self.settle(self.ends.len()) {
            panic!("seed {seed}\n{report}");
        }
    }
}

/// Adds a line `what (number): first, second, …` unless there are none.
fn list(report: &mut String, what: &str, entries: impl Iterator<Item = String>) {
    let mut first = Vec::new();
    let mut count = 0;
    for entry in entries {
        if count < MOST_LISTED {
            first.push(entry);
        }
        count += 1;
    }
    if count > 0 {
        let more = if count > MOST_LISTED { ", …" } else { "" };
        writeln!(report, "{what} ({count}): {}{more}", first.join(", ")).unwrap();
    }
}

impl Item<'_> {
    pub(crate) fn id(&self) -> usize {
        self.id
    }
}

impl Drop for Item<'_> {
    fn drop(&mut self) {
        let inverse = self.inverse.take();
        let is_whole = inverse.as_deref() == Some(&!self.id);
        if !is_whole {
            self.ledger.fault(format!("item {} is torn", self.id));
        }
        let is_first = self.ledger.enter(self.id);
        if !(is_whole && is_first) {
            // The box may be freed already, or be somebody else's.
            mem::forget(inverse);
        }
    }
}
