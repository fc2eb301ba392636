//! The result of an attempt to steal.

/// The result of an attempt to steal.
///
/// ```
/// use ganger_deque::{Steal, Worker};
///
/// let worker = Worker::new();
/// worker.push('a');
/// assert_eq!(worker.stealer().steal(), Steal::Success('a'));
/// assert_eq!(worker.stealer().steal().success(), None);
/// ```
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steal<T> {
    /// At some moment during the call the deque was empty.
    Empty,
    /// The taken item, or the number of taken items.
    Success(T),
    /// Another thread was faster. The deque may or may not have items left. The caller may try
    /// again, here or with another victim.
    Retry,
}

impl<T> Steal<T> {
    /// Returns whether the deque was empty.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// Returns whether the thief took an item.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Success(_))
    }

    /// Returns whether another thread was faster.
    pub fn is_retry(&self) -> bool {
        matches!(self, Self::Retry)
    }

    /// Returns the taken item or number, if the steal succeeded.
    pub fn success(self) -> Option<T> {
        match self {
            Self::Success(taken) => Some(taken),
            Self::Empty | Self::Retry => None,
        }
    }

    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Steal<U> {
        match self {
            Self::Empty => Steal::Empty,
            Self::Success(taken) => Steal::Success(f(taken)),
            Self::Retry => Steal::Retry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_predicates_tell_the_variants_apart() {
        let table = [
            (Steal::Empty, true, false, false, None),
            (Steal::Success(7), false, true, false, Some(7)),
            (Steal::Retry, false, false, true, None),
        ];
        for (steal, empty, success, retry, taken) in table {
            assert_eq!(steal.is_empty(), empty);
            assert_eq!(steal.is_success(), success);
            assert_eq!(steal.is_retry(), retry);
            assert_eq!(steal.success(), taken);
        }
    }
}
