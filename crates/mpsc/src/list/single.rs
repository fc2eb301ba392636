//! A single item in its node: a batch of one item, as thin as a pointer.

use super::{Batch, Node};
use std::marker::PhantomData;
use std::mem;
use std::ptr::NonNull;

/// An item in the node with which it enters a queue: a [`Batch`] of one item that is passed between
/// functions in a register.
#[doc(hidden)]
pub struct Single<T> {
    node: NonNull<Node<T>>,
    item: PhantomData<T>,
}

// SAFETY: it owns the node and the item in it, and no other pointer leads to them.
unsafe impl<T: Send> Send for Single<T> {}
// SAFETY: a shared `Single` only gives out shared references to the item.
unsafe impl<T: Sync> Sync for Single<T> {}

impl<T> Single<T> {
    /// Puts an item into a node. O(1); allocates one node.
    #[inline]
    #[must_use]
    pub fn of(item: T) -> Self {
        // SAFETY: a fresh node, whose link is null.
        unsafe { Self::of_node(Node::alloc(item)) }
    }

    /// Puts an item into a node, as [`of`](Self::of) does, beside the nodes of the queue with the
    /// key `queue`. `newest` returns the address of its newest node, or zero.
    #[inline]
    pub(crate) fn behind(item: T, queue: usize, newest: impl FnOnce() -> usize) -> Self {
        // SAFETY: a fresh node, whose link is null.
        unsafe { Self::of_node(Node::alloc_behind(item, queue, newest)) }
    }

    /// Wraps the item of a node.
    ///
    /// # Safety
    /// The caller owns the node and gives it away. Its link is null.
    #[inline]
    pub(crate) unsafe fn of_node(node: *mut Node<T>) -> Self {
        Self {
            // SAFETY: a node is not at zero.
            node: unsafe { NonNull::new_unchecked(node) },
            item: PhantomData,
        }
    }

    /// Returns the item.
    #[inline]
    #[must_use]
    pub fn item(&self) -> &T {
        // SAFETY: the node is owned by `self`, and borrowed for as long as the reference.
        unsafe { Node::item(self.node.as_ptr()) }
    }

    /// Returns the item for changes.
    #[inline]
    #[must_use]
    pub fn item_mut(&mut self) -> &mut T {
        // SAFETY: the node is owned by `self`, and borrowed exclusively for as long as the
        // reference.
        unsafe { Node::item_mut(self.node.as_ptr()) }
    }

    /// Moves the item out of its node.
    #[inline]
    #[must_use]
    pub fn into_item(self) -> T {
        // SAFETY: the node was owned by `self`, and nothing uses it again.
        unsafe { Node::free(self.into_node()) }
    }

    /// Converts the item to a batch.
    #[inline]
    #[must_use]
    pub fn into_batch(self) -> Batch<T> {
        // SAFETY: the node was owned by `self`, and its link is null.
        unsafe { Batch::of_node(self.into_node()) }
    }

    /// Returns the node; the caller now owns it.
    #[inline]
    pub(crate) fn into_node(self) -> *mut Node<T> {
        let node = self.node.as_ptr();
        mem::forget(self);
        node
    }
}

impl<T> Drop for Single<T> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: the node is owned by `self`, and nothing uses it again.
        drop(unsafe { Node::free(self.node.as_ptr()) });
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn an_item_is_dropped_once_or_comes_out() {
        let count = Rc::new(());
        let single = || Single::of(Rc::clone(&count));
        let mut batch = single().into_batch();
        batch.push_back(Rc::clone(&count));
        assert_eq!((batch.len(), Rc::strong_count(&count)), (2, 3));
        drop(batch);
        let one = single();
        assert!(Rc::ptr_eq(one.item(), &count));
        drop(one);
        assert_eq!(Rc::strong_count(&count), 1);
        let mut single = single();
        *single.item_mut() = Rc::new(());
        assert_eq!(Rc::strong_count(&count), 1);
        assert!(!Rc::ptr_eq(&single.into_item(), &count));
    }
}
