//! The number of traced steps behind a beginning.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of steps that may still be traced because of a beginning. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Budget(Arc<AtomicU32>);

impl Budget {
    /// Creates a budget of this number of steps.
    pub(super) fn of(steps: u32) -> Self {
        Self(Arc::new(AtomicU32::new(steps)))
    }

    /// Takes a step; `false` when none is left.
    pub(super) fn take(&self) -> bool {
        let one_less = |left: u32| left.checked_sub(1);
        // Ordering: Relaxed: a count alone.
        let taken = (self.0).fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        taken.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // pins: V13
    #[test]
    fn a_budget_is_used_up_once() {
        let budget = Budget::of(3);
        let other = budget.clone();
        let taken = [&budget, &other, &budget, &other, &budget].map(Budget::take);
        assert_eq!(taken, [true, true, true, false, false]);
        assert!(!Budget::of(0).take());
    }
}
