//! The items of a batch one after the other, by value and by reference.

use super::Batch;
use crate::node::{Freed, Node};
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

impl<T> IntoIterator for Batch<T> {
    type Item = T;
    type IntoIter = BatchIntoIter<T>;

    fn into_iter(self) -> BatchIntoIter<T> {
        BatchIntoIter {
            batch: self,
            freed: Freed::new(),
        }
    }
}

impl<'a, T> IntoIterator for &'a Batch<T> {
    type Item = &'a T;
    type IntoIter = BatchIter<'a, T>;

    fn into_iter(self) -> BatchIter<'a, T> {
        self.iter()
    }
}

/// The items of a [`Batch`] by value, from the oldest to the newest. What is not taken is dropped
/// with the iterator, which may keep the memory of up to 64 nodes until then.
pub struct BatchIntoIter<T> {
    batch: Batch<T>,
    /// The memory of nodes whose items have been taken.
    freed: Freed<T>,
}

// SAFETY: a batch, and memory that nobody uses.
unsafe impl<T: Send> Send for BatchIntoIter<T> {}
// SAFETY: as above, and a shared iterator gives out nothing.
unsafe impl<T: Sync> Sync for BatchIntoIter<T> {}

impl<T> Iterator for BatchIntoIter<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let node = self.batch.pop_node()?;
        // SAFETY: out of the list, and ours.
        Some(unsafe { self.freed.free(node) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.batch.len, Some(self.batch.len))
    }
}

impl<T> ExactSizeIterator for BatchIntoIter<T> {}
impl<T> FusedIterator for BatchIntoIter<T> {}

impl<T: fmt::Debug> fmt::Debug for BatchIntoIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BatchIntoIter").field(&self.batch).finish()
    }
}

/// The items of a [`Batch`] by reference, from the oldest to the newest.
pub struct BatchIter<'a, T> {
    node: *mut Node<T>,
    left: usize,
    batch: PhantomData<&'a Batch<T>>,
}

// SAFETY: it is a shared reference to the items and nothing else.
unsafe impl<T: Sync> Send for BatchIter<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for BatchIter<'_, T> {}

impl<T> Clone for BatchIter<'_, T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, T> BatchIter<'a, T> {
    pub(super) fn new(batch: &'a Batch<T>) -> Self {
        Self {
            node: batch.front,
            left: batch.len,
            batch: PhantomData,
        }
    }
}

impl<'a, T> Iterator for BatchIter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        if self.node.is_null() {
            return None;
        }
        self.left -= 1;
        // SAFETY: a node of the batch, which is borrowed for 'a and so neither changes nor ends.
        unsafe {
            let item = Node::item(self.node);
            self.node = Node::next(self.node);
            Some(item)
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for BatchIter<'_, T> {}
impl<T> FusedIterator for BatchIter<'_, T> {}

impl<T: fmt::Debug> fmt::Debug for BatchIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}
