//! Counts of expensive operations, made only in the test build of this crate.
//!
//! Times depend on the machine; counts do not. A probe of an empty deque writes to no shared word,
//! and 32 items change hands by one CAS.

/// An expensive operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A CAS of the word that succeeded.
    Changed,
    /// A CAS of the word that failed.
    Failed,
    /// An addition to `released`.
    Released,
    /// An entry into an epoch, which is a RMW.
    Pinned,
    /// A heavy fence.
    Fenced,
}

#[cfg(not(all(test, not(ganger_loom))))]
#[inline(always)]
pub(crate) fn count(_: Event) {}

#[cfg(all(test, not(ganger_loom)))]
pub(crate) use counted::count;

#[cfg(all(test, not(ganger_loom)))]
mod counted {
    use super::Event;
    use crate::{Steal, Worker};
    use std::cell::Cell;

    thread_local! {
        static COUNTS: [Cell<u32>; 5] = const { [const { Cell::new(0) }; 5] };
    }

    /// How often each of the events occurred.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Cost {
        changed: u32,
        failed: u32,
        released: u32,
        pinned: u32,
        fenced: u32,
    }

    pub(crate) fn count(event: Event) {
        COUNTS.with(|counts| counts[event as usize].update(|count| count + 1));
    }

    /// Counts the expensive operations of `operation`.
    fn cost<R>(operation: impl FnOnce() -> R) -> (Cost, R) {
        COUNTS.with(|counts| counts.iter().for_each(|count| count.set(0)));
        let result = operation();
        let [changed, failed, released, pinned, fenced] =
            COUNTS.with(|counts| std::array::from_fn(|event| counts[event].get()));
        let cost = Cost {
            changed,
            failed,
            released,
            pinned,
            fenced,
        };
        (cost, result)
    }

    fn worker_with(items: u32) -> Worker<u32> {
        let worker = Worker::with_capacity(128);
        (0..items).for_each(|item| worker.push(item));
        worker
    }

    #[test]
    fn the_owner_pushes_and_pops_what_is_not_exposed_for_nothing() {
        let (cost, sum) = cost(|| {
            let worker = worker_with(100);
            std::iter::from_fn(|| worker.pop()).sum::<u32>()
        });
        assert_eq!(sum, 4_950);
        assert_eq!(cost, Cost::default());
    }

    #[test]
    fn a_probe_of_an_empty_deque_costs_nothing() {
        let (worker, dest) = (worker_with(3), worker_with(0));
        while worker.pop().is_some() {}
        let stealer = worker.stealer();
        assert_eq!(cost(|| stealer.steal()), (Cost::default(), Steal::Empty));
        let half = cost(|| stealer.steal_half_into(&dest, 32));
        assert_eq!(half, (Cost::default(), Steal::Empty));
        assert_eq!(cost(|| stealer.is_empty()), (Cost::default(), true));
    }

    #[test]
    fn half_of_what_is_exposed_changes_hands_in_one_cas() {
        let (victim, dest) = (worker_with(64), worker_with(0));
        victim.expose();
        let (cost, stolen) = cost(|| victim.stealer().steal_half_into(&dest, 32));
        assert_eq!(stolen, Steal::Success(32));
        let expected = Cost {
            changed: 1,
            released: 1,
            pinned: 1,
            ..Cost::default()
        };
        assert_eq!(cost, expected);
    }

    #[test]
    fn the_first_thief_pays_for_an_announcement_and_the_next_does_not() {
        let (victim, dest) = (worker_with(64), worker_with(0));
        let stealer = victim.stealer();
        let (first, stolen) = cost(|| stealer.steal_half_into(&dest, 32));
        assert_eq!(stolen, Steal::Success(32));
        assert_eq!((first.changed, first.fenced), (2, 1));
        let (next, stolen) = cost(|| stealer.steal_half_into(&dest, 32));
        assert_eq!(stolen, Steal::Success(16));
        assert_eq!((next.changed, next.fenced), (1, 0));
    }

    #[test]
    fn an_owner_takes_exposed_items_back_in_few_changes() {
        let worker = worker_with(100);
        worker.expose();
        let (cost, sum) = cost(|| std::iter::from_fn(|| worker.pop()).sum::<u32>());
        assert_eq!(sum, 4_950);
        assert!(cost.changed <= 7, "{cost:?}");
        assert_eq!((cost.failed, cost.pinned, cost.fenced), (0, 0, 0));
    }
}
