//! The values that a soak moves, of different sizes. Each shows when it is torn or doubled.

use crate::{Item, Ledger};

/// A kind of item, for plans.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// [`Word`].
    Word,
    /// [`Item`].
    Boxed,
    /// [`Wide`].
    Wide,
    /// [`Nothing`].
    Nothing,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Word, Self::Boxed, Self::Wide, Self::Nothing];

    /// Returns whether the items can be told apart.
    #[must_use]
    pub fn has_ids(self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

/// A value that a queue can move.
pub trait Load<'a>: Send + Sized {
    /// Whether its destructor enters it into the ledger. Then a dropped queue may still hold the
    /// value.
    const ENTERS_ITSELF: bool;

    /// Creates the value of an id.
    fn new(ledger: &'a Ledger, id: usize) -> Self;

    /// Returns the value's id, unless all values are alike.
    fn id(&self) -> Option<usize>;

    /// Ends a value after a thread has taken it.
    fn end(self, ledger: &'a Ledger);
}

/// A word without a destructor: the id, and bits computed from the id.
#[derive(Debug)]
pub struct Word(u64);

/// 48 bytes; each part follows from the first.
#[derive(Debug)]
pub struct Wide<'a> {
    words: [u64; 5],
    ledger: &'a Ledger,
}

/// No bytes at all: such values can be counted, but not told apart.
#[derive(Debug)]
pub struct Nothing;

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Word>() == 8 && size_of::<Wide<'_>>() == 48);
const _: () = assert!(size_of::<Nothing>() == 0);

/// Odd, so that different ids have different products.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

impl<'a> Load<'a> for Word {
    const ENTERS_ITSELF: bool = false;

    fn new(_ledger: &'a Ledger, id: usize) -> Self {
        let id = u64::from(u32::try_from(id).unwrap());
        Self(id | (id.wrapping_mul(FACTOR) << 32))
    }

    fn id(&self) -> Option<usize> {
        usize::try_from(self.0 & 0xFFFF_FFFF).ok()
    }

    fn end(self, ledger: &'a Ledger) {
        let id = self.0 & 0xFFFF_FFFF;
        if id.wrapping_mul(FACTOR) << 32 != self.0 - id {
            ledger.fault(format!("a torn word: {:#x}", self.0));
        }
        ledger.enter(usize::try_from(id).unwrap());
    }
}

impl<'a> Load<'a> for Wide<'a> {
    const ENTERS_ITSELF: bool = true;

    fn new(ledger: &'a Ledger, id: usize) -> Self {
        let id = id as u64;
        let words = [0, 1, 2, 3, 4].map(|part| id ^ FACTOR.wrapping_mul(part));
        Self { words, ledger }
    }

    fn id(&self) -> Option<usize> {
        usize::try_from(self.words[0]).ok()
    }

    fn end(self, _ledger: &'a Ledger) {}
}

impl Drop for Wide<'_> {
    fn drop(&mut self) {
        let ids = [0, 1, 2, 3, 4].map(|part| self.words[part] ^ FACTOR.wrapping_mul(part as u64));
        if ids.iter().any(|id| *id != ids[0]) {
            self.ledger.fault(format!("a torn item with ids {ids:?}"));
        }
        self.ledger.enter(usize::try_from(ids[0]).unwrap());
    }
}

impl<'a> Load<'a> for Item<'a> {
    const ENTERS_ITSELF: bool = true;

    fn new(ledger: &'a Ledger, id: usize) -> Self {
        ledger.item(id)
    }

    fn id(&self) -> Option<usize> {
        Some(Item::id(self))
    }

    fn end(self, _ledger: &'a Ledger) {}
}

impl<'a> Load<'a> for Nothing {
    const ENTERS_ITSELF: bool = false;

    fn new(_ledger: &'a Ledger, _id: usize) -> Self {
        Self
    }

    fn id(&self) -> Option<usize> {
        None
    }

    fn end(self, _ledger: &'a Ledger) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes and ends values of a kind; returns the errors.
    fn end<'a, L: Load<'a>>(ledger: &'a Ledger) -> Result<(), String> {
        for id in [0, 2] {
            let item = L::new(ledger, id);
            assert!(item.id().is_none_or(|found| found == id));
            item.end(ledger);
        }
        if L::ENTERS_ITSELF {
            drop(L::new(ledger, 1));
        } else {
            L::new(ledger, 1).end(ledger);
        }
        ledger.settle(0..3)
    }

    #[test]
    fn each_kind_enters_its_items_once() {
        assert_eq!(end::<Word>(&Ledger::new(3)), Ok(()));
        assert_eq!(end::<Wide<'_>>(&Ledger::new(3)), Ok(()));
        assert_eq!(end::<Item<'_>>(&Ledger::new(3)), Ok(()));
        let lost = end::<Nothing>(&Ledger::new(3)).unwrap_err();
        assert_eq!(lost, "lost (3): 0, 1, 2\n");
    }

    #[test]
    fn torn_ones_are_faults() {
        let ledger = &Ledger::new(2);
        let Word(mut word) = Word::new(ledger, 1);
        word ^= 1 << 40;
        Word(word).end(ledger);
        let mut wide = Wide::new(ledger, 0);
        wide.words[3] = 0;
        drop(wide);
        let report = ledger.settle(0..2).unwrap_err();
        assert!(
            report.starts_with("other faults (2): a torn word: "),
            "{report}"
        );
        assert!(
            report.contains("a torn item with ids [0, 0, 0, "),
            "{report}"
        );
    }
}
