//! The lines of a place: a line for each priority.

use super::line::Line;
use crate::pool::entry::Entry;

/// The lines of a worker, or the common lines. The rank of a priority is the number of higher
/// priorities.
pub(super) struct Lines<J, A> {
    /// The line of the highest priority, mostly the only line.
    first: Line<J, A>,
    others: Vec<Line<J, A>>,
}

impl<J, A> Lines<J, A> {
    /// Creates empty lines for at least a single priority.
    pub(super) fn new(priorities: usize) -> Self {
        Self {
            first: Line::new(),
            others: (1..priorities).map(|_| Line::new()).collect(),
        }
    }

    #[inline]
    pub(super) fn line(&mut self, rank: usize) -> &mut Line<J, A> {
        match rank.checked_sub(1) {
            None => &mut self.first,
            Some(other) => &mut self.others[other],
        }
    }

    /// Returns the first job of the highest priority with jobs, and its rank.
    #[inline]
    pub(super) fn head(&self) -> Option<(usize, &Entry<J, A>)> {
        match self.first.first() {
            Some(entry) => Some((0, entry)),
            None => {
                let mut others = (1..).zip(&self.others);
                others.find_map(|(rank, line)| Some((rank, line.first()?)))
            }
        }
    }

    /// Returns all lines, from the highest priority to the lowest.
    pub(super) fn all(&self) -> impl Iterator<Item = &Line<J, A>> {
        [&self.first].into_iter().chain(&self.others)
    }

    /// Returns all lines as [`all`](Self::all) does, with their ranks.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = (usize, &mut Line<J, A>)> {
        let all = [&mut self.first].into_iter().chain(&mut self.others);
        (0..).zip(all)
    }

    pub(super) fn len(&self) -> usize {
        self.all().map(Line::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all().all(Line::is_empty)
    }
}
