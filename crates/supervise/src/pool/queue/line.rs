//! Jobs that wait in a line, in the order of their numbers. A job may leave from the middle.

use crate::pool::entry::{Entry, Queued};
use std::collections::VecDeque;
use std::mem;

/// A line with less room keeps its memory.
const SMALL: usize = 1024;

/// The first spot always has a job. O(1) amortised; the search for a number is O(log n).
pub(super) struct Line<J, A> {
    spots: VecDeque<Spot<J, A>>,
    /// The number of spots whose jobs have left.
    gone: usize,
}

enum Spot<J, A> {
    Waits(Queued<J, A>),
    /// The job with this number has left.
    Gone(u64),
}

impl<J, A> Spot<J, A> {
    fn number(&self) -> u64 {
        match self {
            Self::Waits(entry) => entry.number,
            Self::Gone(number) => *number,
        }
    }

    fn entry(&self) -> Option<&Entry<J, A>> {
        match self {
            Self::Waits(entry) => Some(entry),
            Self::Gone(_) => None,
        }
    }
}

impl<J, A> Line<J, A> {
    pub(super) fn new() -> Self {
        Self {
            spots: VecDeque::new(),
            gone: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.spots.len() - self.gone
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spots.is_empty()
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&Entry<J, A>> {
        self.spots.front().and_then(Spot::entry)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry<J, A>> {
        self.spots.iter().filter_map(Spot::entry)
    }

    /// Returns the jobs from this number on.
    pub(super) fn since(&mut self, number: u64) -> impl Iterator<Item = &mut Entry<J, A>> {
        let from = self.spots.partition_point(|it| it.number() < number);
        self.spots.range_mut(from..).filter_map(|it| match it {
            Spot::Waits(entry) => Some(&mut **entry),
            Spot::Gone(_) => None,
        })
    }

    /// Appends the job with the highest number.
    #[inline]
    pub(super) fn push_back(&mut self, entry: Queued<J, A>) {
        let last = self.spots.back().map(Spot::number);
        debug_assert!(last.is_none_or(|it| it < entry.number), "not the last");
        self.spots.push_back(Spot::Waits(entry));
    }

    /// Takes over all jobs of the other line, whose numbers are higher. O(1) if this one is empty.
    #[inline]
    pub(super) fn append(&mut self, other: &mut Self) {
        if self.spots.is_empty() {
            mem::swap(self, other);
        } else {
            self.spots.append(&mut other.spots);
            self.gone += mem::take(&mut other.gone);
        }
    }

    /// Puts the job with the lowest number in front.
    pub(super) fn push_front(&mut self, entry: Queued<J, A>) {
        let first = self.spots.front().map(Spot::number);
        debug_assert!(first.is_none_or(|it| entry.number < it), "not the first");
        self.spots.push_front(Spot::Waits(entry));
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<Queued<J, A>> {
        let Some(Spot::Waits(entry)) = self.spots.pop_front() else {
            return None;
        };
        self.tidy();
        Some(entry)
    }

    /// Inserts a job in its place by number. O(n), but O(1) near an end.
    pub(super) fn insert(&mut self, entry: Queued<J, A>) {
        let place = self.spots.partition_point(|it| it.number() < entry.number);
        self.spots.insert(place, Spot::Waits(entry));
    }

    /// Returns the number of the last job. O(1) amortised.
    pub(super) fn last(&mut self) -> Option<u64> {
        while let Some(Spot::Gone(_)) = self.spots.back() {
            self.spots.pop_back();
            self.gone -= 1;
        }
        self.spots.back().map(Spot::number)
    }

    /// Takes a job out, if it is there.
    pub(super) fn remove(&mut self, number: u64) -> Option<Queued<J, A>> {
        let place = self.spots.binary_search_by_key(&number, Spot::number);
        let spot = self.spots.get_mut(place.ok()?)?;
        let Spot::Waits(entry) = mem::replace(spot, Spot::Gone(number)) else {
            return None;
        };
        self.gone += 1;
        self.tidy();
        Some(entry)
    }

    /// Keeps a job at the head, fewer empty spots than jobs, and little spare room.
    #[inline]
    fn tidy(&mut self) {
        if self.gone > 0 {
            self.leave_out();
        }
        if self.spots.len() < self.spots.capacity() / 8 && self.spots.capacity() > SMALL {
            self.give_back();
        }
    }

    #[cold]
    fn leave_out(&mut self) {
        while let Some(Spot::Gone(_)) = self.spots.front() {
            self.spots.pop_front();
            self.gone -= 1;
        }
        if self.gone > self.spots.len() / 2 {
            self.spots.retain(|it| it.entry().is_some());
            self.gone = 0;
        }
    }

    #[cold]
    fn give_back(&mut self) {
        self.spots.shrink_to(SMALL.max(2 * self.spots.len()));
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn entry(number: u64) -> Queued<u64, ()> {
        Box::new(Entry {
            number,
            ..Entry::new(number, None)
        })
    }

    /// Checks that the line agrees with a sorted set. Numbers come from a linear congruential
    /// generator.
    // pins: W4, W5
    #[test]
    fn a_line_is_a_sorted_list_whatever_leaves_it() {
        let (mut line, mut list, mut next, mut random) = (Line::new(), BTreeSet::new(), 0, 1_u64);
        let mut chance = |of: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005);
            random = random.wrapping_add(1_442_695_040_888_963_407);
            (random >> 32) % of
        };
        for round in 0..20_000_u64 {
            // The line grows for long, and shrinks for long.
            let grows = (round / 2_500).is_multiple_of(2);
            assert_eq!(line.last().as_ref(), list.last());
            match chance(if grows { 8 } else { 4 }) {
                0 => assert_eq!(line.pop_front().map(|it| it.job), list.pop_first()),
                1 | 2 => {
                    let number = chance(next + 1);
                    let removed = line.remove(number).map(|it| it.job);
                    assert_eq!(removed, list.take(&number));
                }
                3 if !grows => {
                    let first = line.pop_front();
                    first.into_iter().for_each(|it| line.push_front(it));
                    // Three come back in another order.
                    let [a, b, c] = std::array::from_fn(|_| line.pop_front());
                    [a, c, b]
                        .into_iter()
                        .flatten()
                        .for_each(|it| line.insert(it));
                }
                4 => {
                    let mut other = Line::new();
                    let end = next + chance(5);
                    for number in next..end {
                        other.push_back(entry(number));
                        list.insert(number);
                    }
                    next = end;
                    line.append(&mut other);
                    assert!(other.is_empty());
                }
                _ => {
                    line.push_back(entry(next));
                    list.insert(next);
                    next += 1;
                }
            }
            assert_eq!(line.first().map(|it| &it.job), list.first());
            assert_eq!((line.len(), line.is_empty()), (list.len(), list.is_empty()));
            assert!(line.spots.len() <= 2 * list.len());
            if round.is_multiple_of(100) {
                assert!(line.iter().map(|it| &it.job).eq(&list));
                let from = chance(next + 1);
                let since = line.since(from).map(|it| it.job);
                assert!(since.eq(list.range(from..).copied()));
            }
        }
        (0..100_000).for_each(|it| line.push_back(entry(next + it)));
        while line.pop_front().is_some() {}
        assert!(line.spots.capacity() <= SMALL);
    }
}
