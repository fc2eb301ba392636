//! The account of a stress test: each item ends exactly once, and as it was made.
//!
//! Errors are noted, and reported when all threads have ended. A panic in a destructor would say
//! less: the process aborts when a panic meets another.

use std::fmt::Write as _;
use std::mem;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// The limit of ids, or of other faults, in a report.
const MOST_LISTED: usize = 20;

/// How often each item has ended.
#[derive(Debug)]
pub struct Ledger {
    ends: Box<[AtomicU8]>,
    faults: Mutex<Vec<String>>,
}

/// An item whose destructor enters it into the ledger. The item holds its id, and on the heap the
/// id's complement, so that a torn or stale copy shows.
#[derive(Debug)]
pub struct Item<'a> {
    id: usize,
    /// There until the destructor.
    inverse: Option<Box<usize>>,
    ledger: &'a Ledger,
}

impl Ledger {
    /// Creates a ledger for items with ids below `items`.
    #[must_use]
    pub fn new(items: usize) -> Self {
        Self {
            ends: (0..items).map(|_| AtomicU8::new(0)).collect(),
            faults: Mutex::new(Vec::new()),
        }
    }

    /// Creates an item of this ledger.
    #[must_use]
    pub fn item(&self, id: usize) -> Item<'_> {
        Item {
            id,
            inverse: Some(Box::new(!id)),
            ledger: self,
        }
    }

    /// Writes down the end of an item. Returns whether this is its first end.
    pub fn enter(&self, id: usize) -> bool {
        let Some(ends) = self.ends.get(id) else {
            self.fault(format!("an item with id {id}, which nobody has made"));
            return false;
        };
        // Ordering: Relaxed, because joining the threads orders it before the account is read.
        ends.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// Notes another error.
    pub fn fault(&self, what: impl Into<String>) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        // A fault beyond the limit shows that the list is incomplete.
        if faults.len() <= MOST_LISTED {
            faults.push(what.into());
        }
    }

    /// Returns whether every item has ended; `seen` is the caller's, 0 at first, and saves it from
    /// looking at the same items again.
    pub fn is_complete(&self, seen: &mut usize) -> bool {
        // Ordering: Relaxed, because it only tells a thief when to stop.
        let has_ended = |ends: &AtomicU8| ends.load(Ordering::Relaxed) > 0;
        *seen += self.ends[*seen..]
            .iter()
            .take_while(|ends| has_ended(ends))
            .count();
        *seen == self.ends.len()
    }

    /// Settles the account, when all threads have ended, and items with the ids `made` have been
    /// made.
    ///
    /// # Errors
    /// The errors, a line for each kind.
    ///
    /// # Panics
    /// If an id of `made` is not below the number of items.
    pub fn settle(&self, made: impl IntoIterator<Item = usize>) -> Result<(), String> {
        let mut is_made = vec![false; self.ends.len()];
        made.into_iter().for_each(|id| is_made[id] = true);
        let ended = |wanted: fn(bool, u8) -> bool| {
            let all = self.ends.iter().zip(&is_made).enumerate();
            // Ordering: Relaxed, because all threads have been joined.
            all.filter(move |(_, (ends, made))| wanted(**made, ends.load(Ordering::Relaxed)))
                .map(|(id, _)| id.to_string())
        };
        let mut report = String::new();
        list(&mut report, "lost", ended(|made, ends| made && ends == 0));
        list(&mut report, "more than once", ended(|_, ends| ends > 1));
        list(
            &mut report,
            "never made",
            ended(|made, ends| !made && ends > 0),
        );
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        list(&mut report, "other faults", faults.iter().cloned());
        if report.is_empty() {
            Ok(())
        } else {
            Err(report)
        }
    }

    /// Fails if anything is wrong, all items having been made.
    ///
    /// # Panics
    /// If anything is wrong, with the seed.
    pub fn assert_settled(&self, seed: u64) {
        if let Err(report) = self.settle(0..self.ends.len()) {
            panic!("seed {seed}\n{report}");
        }
    }
}

/// Adds a line `what (number): first, second, …` unless `entries` is empty.
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
        writeln!(report, "{what} ({count}): {}{more}", first.join(", "))
            .expect("a string takes everything");
    }
}

impl Item<'_> {
    /// Returns the item's id.
    #[must_use]
    pub fn id(&self) -> usize {
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
            // The box may be freed already, or belong to another item.
            mem::forget(inverse);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_end_once_are_settled() {
        let ledger = Ledger::new(4);
        let mut seen = 0;
        (0..3).for_each(|id| drop(ledger.item(id)));
        assert!(!ledger.is_complete(&mut seen));
        assert_eq!((ledger.settle(0..3), seen), (Ok(()), 3));
        drop(ledger.item(3));
        assert!(ledger.is_complete(&mut seen));
        ledger.assert_settled(0);
    }

    #[test]
    fn all_that_is_wrong_is_listed() {
        let ledger = Ledger::new(4);
        let _lost = ledger.item(0);
        drop(ledger.item(1));
        drop(ledger.item(1));
        drop(ledger.item(2));
        drop(ledger.item(3));
        drop(Item {
            id: 3,
            inverse: Some(Box::new(0)),
            ledger: &ledger,
        });
        ledger.enter(4);
        let report = ledger.settle(0..2).unwrap_err();
        let expected = "lost (1): 0\nmore than once (2): 1, 3\nnever made (2): 2, 3\n\
                        other faults (2): item 3 is torn, \
                        an item with id 4, which nobody has made\n";
        assert_eq!(report, expected);
    }

    #[test]
    fn a_long_list_is_cut() {
        let report = Ledger::new(100).settle(0..100).unwrap_err();
        assert!(
            report.starts_with("lost (100): 0, 1, ") && report.ends_with(", 19, …\n"),
            "{report}"
        );
    }

    #[test]
    #[should_panic(expected = "seed 7\nlost (1): 0\n")]
    fn a_loss_fails_with_the_seed() {
        Ledger::new(1).assert_settled(7);
    }
}
