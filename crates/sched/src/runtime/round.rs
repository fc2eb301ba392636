//! Rounds of a deque: how a process gives way to the others of its deque.
//!
//! **Problem.** A process gives way to all other ready processes. A deque is last in, first out. At
//! the end of the global queue the process costs cache lines written by all workers.
//!
//! **Rejected.** A second queue of each worker, first in, first out: thieves, sleepers, the halt
//! and the balance of workers would have to look there, too.
//!
//! **Protocol**
//! 1. A process that gives way goes to its worker's deque, if the deque has others and nothing
//!    woken. This begins a *round*: as many picks as the deque has others.
//! 2. A pick in a round takes the oldest. Processes woken meanwhile, or continuing, lie on top, and
//!    come first.
//! 3. A round ends with a look at the global queue, whose processes have waited for as long.
//!    Another round begins if a process has given way in this one.

use std::cell::Cell;

/// The round of a worker's deque.
#[derive(Default)]
pub(crate) struct Round {
    /// The number of picks to come, plus one; 0 without a round.
    left: Cell<usize>,
    /// Whether a process has given way in this round.
    goes_on: Cell<bool>,
}

/// The next pick in a round.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The oldest of the deque.
    Oldest,
    /// The round is over, and another has begun: the global queue first.
    Again,
    /// No round is under way.
    Over,
}

impl Round {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.left.get() > 0
    }

    /// Notes that a process gives way to the `others` of the deque.
    #[inline]
    pub(crate) fn give_way(&self, others: usize) {
        if self.is_on() {
            self.goes_on.set(true);
        } else {
            self.left.set(others + 1);
        }
    }

    /// Counts a pick from a deque of length `len`.
    #[inline]
    pub(crate) fn pick(&self, len: usize) -> Next {
        let left = self.left.get();
        if left > 1 {
            self.left.set(left - 1);
            return Next::Oldest;
        }
        if self.goes_on.take() && len > 0 {
            // This pick is the first of the round.
            self.left.set(len);
            return Next::Again;
        }
        self.end();
        Next::Over
    }

    /// Ends the round: the deque is empty.
    #[inline]
    pub(crate) fn end(&self) {
        self.left.set(0);
        self.goes_on.set(false);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_round_lasts_for_the_others_and_goes_on_when_one_of_them_gives_way() {
        let round = Round::default();
        assert!(!round.is_on());
        round.give_way(2);
        assert_eq!(
            [3, 2].map(|len| round.pick(len)),
            [Next::Oldest, Next::Oldest]
        );
        assert_eq!((round.pick(1), round.is_on()), (Next::Over, false));
        round.give_way(2);
        assert_eq!(round.pick(3), Next::Oldest);
        round.give_way(2);
        assert_eq!(round.pick(3), Next::Oldest);
        // Three picks: this pick, and two more.
        assert_eq!(round.pick(3), Next::Again);
        assert_eq!(
            [3, 2].map(|len| round.pick(len)),
            [Next::Oldest, Next::Oldest]
        );
        assert_eq!(round.pick(1), Next::Over);
        round.give_way(1);
        round.end();
        assert!(!round.is_on());
    }
}
