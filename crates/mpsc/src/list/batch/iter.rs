//! The items of a batch one after the other, by value and by reference.

use super::Batch;
use crate::list::node::{Freed, Node};
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

impl<T> Batch<T> {
    /// Returns the items from the oldest to the newest.
    #[must_use]
    pub fn iter(&self) -> BatchIter<'_, T> {
        BatchIter {
            node: self.front,
            left: self.len,
            batch: PhantomData,
        }
    }
}

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

/// The items of a [`Batch`] by value, from the oldest to the newest.
///
/// Dropping it drops the remaining items. Until then it may keep the memory of up to 64 nodes whose
/// items have been taken.
pub struct BatchIntoIter<T> {
    batch: Batch<T>,
    /// The memory of nodes whose items have been taken.
    freed: Freed<T>,
}

impl<T> Iterator for BatchIntoIter<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let node = self.batch.pop_node()?;
        // SAFETY: the node is out of the list, and this thread's.
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

// SAFETY: it only gives out shared references to the items.
unsafe impl<T: Sync> Send for BatchIter<'_, T> {}
// SAFETY: it only gives out shared references to the items.
unsafe impl<T: Sync> Sync for BatchIter<'_, T> {}

impl<T> Clone for BatchIter<'_, T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, T> Iterator for BatchIter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        if self.node.is_null() {
            return None;
        }
        self.left -= 1;
        // SAFETY: a node of the batch, which is borrowed for 'a and so does not change.
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
