//! The labels of a scheduler's processes, by small numbers.
//!
//! A record has two bytes for its label, and a child inherits them. Numbers are never given back:
//! labels are for tenants, kinds of work and stages, a few in each program. From the [`MOST`]th on,
//! each new label is counted as [`OTHERS`]. A label is cut at [`LENGTH`] bytes, so the memory kept
//! for ever has a bound.

use ganger_sync::sync::{Mutex, lock};
use std::collections::HashMap;
use std::sync::Arc;

/// The most labels with a number of their own.
const MOST: usize = 10_000;

/// How many bytes of a label are kept.
const LENGTH: usize = 200;

/// The label for all further labels.
const OTHERS: &str = "other labels";

/// A label by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(pub(super) u16);

impl Label {
    /// No label.
    pub(super) const NONE: Self = Self(0);
}

#[derive(Default)]
pub(super) struct Labels(Mutex<Known>);

#[derive(Default)]
struct Known {
    numbers: HashMap<Arc<str>, Label>,
    /// The label of number `n` is at `n - 1`.
    names: Vec<Arc<str>>,
}

impl Labels {
    /// Returns the number of a label. O(1), under a lock.
    pub(super) fn of(&self, name: &str) -> Label {
        let name = &name[..name.floor_char_boundary(LENGTH)];
        let mut known = lock(&self.0);
        let name = match known.names.len() {
            MOST.. if !known.numbers.contains_key(name) => OTHERS,
            _ => name,
        };
        if let Some(label) = known.numbers.get(name) {
            return *label;
        }
        let name: Arc<str> = name.into();
        known.names.push(Arc::clone(&name));
        let label = u16::try_from(known.names.len()).map_or(Label::NONE, Label);
        known.numbers.insert(name, label);
        label
    }

    /// Returns the label with this number.
    pub(super) fn name(&self, label: Label) -> Option<Arc<str>> {
        let at = usize::from(label.0).checked_sub(1)?;
        lock(&self.0).names.get(at).cloned()
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    // pins: V8
    #[test]
    fn a_label_has_one_number_and_too_many_share_one() {
        let labels = Labels::default();
        let first = labels.of("a");
        assert_eq!((labels.of("a"), labels.of("b") == first), (first, false));
        assert_eq!(labels.name(first).as_deref(), Some("a"));
        assert_eq!(labels.name(Label::NONE), None);
        // The end of the 200th byte is in the middle of a character.
        let long = format!("x{}", "ü".repeat(LENGTH));
        let cut = labels.of(&long);
        assert_eq!(labels.name(cut).as_deref(), Some(&long[..LENGTH - 1]));
        assert_eq!(labels.of(&format!("{long} and more")), cut);
        for number in 0..2 * MOST {
            labels.of(&format!("tenant-{number}"));
        }
        let late = labels.of("late");
        assert_eq!(labels.name(late).as_deref(), Some(OTHERS));
        assert_eq!((labels.of("later"), labels.of("a")), (late, first));
        assert_eq!(lock(&labels.0).names.len(), MOST + 1);
    }
}
