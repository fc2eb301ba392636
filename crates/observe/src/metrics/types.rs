//! The types with a label of their own in metrics.
//!
//! A label with any number of values floods the store of the metrics. So the first [`TYPES`] types
//! have names of their own, the busiest first where more of them are new at a look, and all further
//! types share one. A type keeps its name: a counter that changed its name would fall.

use ganger_sched::Distributions;
use ganger_sync::sync::lock;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;

/// The most values of the label `type`, beside [`OTHER`].
const TYPES: usize = 64;

/// The `type` of all further types.
pub(super) const OTHER: &str = "other";

/// The scheduler's common name of all types without measures of their own.
const UNKNOWN: &str = "other types";

/// The types of a scheduler with names of their own, as the scheduler's extension.
#[derive(Default)]
pub(super) struct Types(Mutex<BTreeSet<&'static str>>);

impl Types {
    /// Gives names to new types, as long as there are some left.
    pub(super) fn admit(
        &self,
        measured: Option<&Distributions>,
        live: &HashMap<&'static str, u64>,
    ) {
        let mut known = lock(&self.0);
        if known.len() == TYPES {
            return;
        }
        let mut new: HashMap<&'static str, (u64, u64)> = HashMap::new();
        for (name, of) in measured.iter().flat_map(|it| &it.by_type) {
            new.entry(name).or_default().0 += of.step.len();
        }
        for (name, count) in live {
            new.entry(name).or_default().1 += count;
        }
        let mut new: Vec<_> = new.into_iter().collect();
        new.retain(|(name, _)| !known.contains(name) && *name != UNKNOWN);
        new.sort_by_key(|&(name, busy)| (Reverse(busy), name));
        let left = TYPES - known.len();
        known.extend(new.into_iter().take(left).map(|it| it.0));
    }

    /// Returns the name under which a type is shown.
    pub(super) fn shown<'a>(&self, name: &'a str) -> &'a str {
        if lock(&self.0).contains(name) {
            name
        } else {
            OTHER
        }
    }

    /// Returns whether all labels for types are taken.
    pub(super) fn has_others(&self) -> bool {
        lock(&self.0).len() == TYPES
    }

    pub(super) fn all(&self) -> Vec<&'static str> {
        lock(&self.0).iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(types: &[(&'static str, u64)]) -> HashMap<&'static str, u64> {
        types.iter().copied().collect()
    }

    // pins: V9
    #[test]
    fn the_busiest_types_have_names_and_keep_them() {
        let types = Types::default();
        types.admit(None, &live(&[("late", 1)]));
        let names: Vec<&'static str> = (0..100)
            .map(|number| &*Box::leak(format!("type-{number:02}").into_boxed_str()))
            .collect();
        let all: Vec<_> = names.iter().copied().zip(1..).collect();
        types.admit(None, &live(&all));
        assert!(types.has_others());
        let document = include_str!("../../../../docs/METRICS.md");
        assert!(document.contains(&format!("`type` has {} values", types.all().len())));
        assert!(document.contains(&format!("`{OTHER}` together")));
        // The type before them has kept its name, and the most alive types have the rest of the
        // names.
        assert_eq!(types.shown("late"), "late");
        assert_eq!(types.shown("type-37"), "type-37");
        assert_eq!(types.shown("type-36"), OTHER);
        types.admit(None, &live(&[("type-36", 1_000)]));
        assert_eq!(types.shown("type-36"), OTHER);
    }
}
