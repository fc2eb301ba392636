//! Loads that must wait for stores just before them.
//!
//! A store leaves the processor's store buffer some time after it was executed. A load from the
//! bytes of a single store is served from the buffer. A load that needs more waits until the store
//! has arrived in the cache, and no later instruction is finished meanwhile. This happens where
//! code writes a value in small pieces and moves it in larger pieces, as compilers do with values
//! passed by reference. Some hundred instructions later no load waits for that store any more.

use std::collections::VecDeque;

/// The most instructions between a store and a load that still meets it in the store buffer.
const NEAR: u64 = 100;

/// The stores that may be on their way.
#[derive(Debug, Default)]
pub(super) struct Stores {
    instructions: u64,
    /// The oldest first.
    recent: VecDeque<Store>,
}

#[derive(Debug)]
struct Store {
    /// The number of the storing instruction.
    at: u64,
    first: u64,
    last: u64,
}

impl Stores {
    /// Another instruction begins.
    pub(super) fn advance(&mut self) {
        self.instructions += 1;
        let is_over = |store: &Store| store.at + NEAR < self.instructions;
        while self.recent.front().is_some_and(is_over) {
            self.recent.pop_front();
        }
    }

    /// Notes a store to the bytes from `first` to `last`.
    pub(super) fn store(&mut self, first: u64, last: u64) {
        let at = self.instructions;
        self.recent.push_back(Store { at, first, last });
    }

    /// Returns whether a load of these bytes must wait: the newest store to any of them does not
    /// cover all of them.
    pub(super) fn has_to_wait(&self, first: u64, last: u64) -> bool {
        let mut stores = self.recent.iter().rev();
        let newest = stores.find(|store| store.first <= last && first <= store.last);
        newest.is_some_and(|store| first < store.first || store.last < last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_waits_for_a_store_of_a_part_of_it() {
        let mut stores = Stores::default();
        stores.advance();
        stores.store(8, 15);
        stores.store(16, 23);
        for (first, last, waits) in [
            (8, 15, false),
            (12, 15, false),
            (8, 23, true),
            (0, 8, true),
            (23, 24, true),
            (24, 31, false),
        ] {
            assert_eq!(stores.has_to_wait(first, last), waits, "{first} to {last}");
        }
        // Bytes below a newer store do not matter.
        stores.store(0, 31);
        assert!(!stores.has_to_wait(8, 23));
    }

    #[test]
    fn nobody_waits_for_what_was_stored_long_ago() {
        let mut stores = Stores::default();
        stores.store(8, 15);
        for _ in 0..NEAR {
            stores.advance();
        }
        assert!(stores.has_to_wait(8, 23));
        stores.advance();
        assert!(!stores.has_to_wait(8, 23) && stores.recent.is_empty());
    }
}
