//! One item in its node: a batch of one, as thin as a pointer.

use crate::Batch;
use crate::node::Node;
use std::marker::PhantomData;
use std::mem;
use std::ptr::NonNull;

/// One item, in the node in which it goes into a queue: a [`Batch`] of one that goes from function to function in a
/// register.
#[doc(hidden)]
pub struct Single<T> {
    node: NonNull<Node<T>>,
    item: PhantomData<T>,
}

// SAFETY: it owns the node and the item in it, and nobody else has a pointer to them.
unsafe impl<T: Send> Send for Single<T> {}
// SAFETY: a shared one gives out shared references to the item and nothing else.
unsafe impl<T: Sync> Sync for Single<T> {}

impl<T> Single<T> {
    /// As [`Batch::of`].
    #[inline]
    #[must_use]
    pub fn of(item: T) -> Self {
        // SAFETY: a fresh node, which is ours.
        unsafe { Self::of_node(Node::alloc(item)) }
    }

    /// The item of that node.
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

    /// The item.
    #[inline]
    #[must_use]
    pub fn item(&self) -> &T {
        // SAFETY: a node of ours; it is borrowed for as long as this.
        unsafe { Node::item(self.node.as_ptr()) }
    }

    /// The item, to be changed.
    #[inline]
    #[must_use]
    pub fn item_mut(&mut self) -> &mut T {
        // SAFETY: as in `item`.
        unsafe { Node::item_mut(self.node.as_ptr()) }
    }

    /// The item, out of its node.
    #[inline]
    #[must_use]
    pub fn into_item(self) -> T {
        // SAFETY: a node of ours, which is not used again.
        unsafe { Node::free(self.into_node()) }
    }

    /// The same as a batch.
    #[inline]
    #[must_use]
    pub fn into_batch(self) -> Batch<T> {
        // SAFETY: a node of ours, whose link is null.
        unsafe { Batch::of_node(self.into_node()) }
    }

    /// The node, which is the caller's from now on.
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
        // SAFETY: a node of ours, which is not used again.
        drop(unsafe { Node::free(self.node.as_ptr()) });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Pushed, Queue};
    use std::rc::Rc;

    #[test]
    fn one_item_goes_in_as_a_batch_of_one_does() {
        let count = Rc::new(());
        let single = || Single::of(Rc::clone(&count));
        let queue = Queue::new();
        assert_eq!(queue.push_single(single()).ok(), Some(Pushed::First));
        assert_eq!(queue.push_single(single()).ok(), Some(Pushed::Queued));
        assert_eq!(queue.drain().len(), 2);
        let mut batch = single().into_batch();
        batch.push_back(Rc::clone(&count));
        assert_eq!((batch.len(), Rc::strong_count(&count)), (2, 3));
        drop(batch);
        let one = single();
        assert!(Rc::ptr_eq(one.item(), &count));
        drop(one);
        assert_eq!(Rc::strong_count(&count), 1);

        let _ = queue.close();
        let refused = queue.push_single(single()).err().unwrap().into_inner();
        assert!(Rc::ptr_eq(refused.item(), &count));
        assert_eq!(Rc::strong_count(&count), 2);
        // Wherever its link led: it is one item again.
        assert_eq!(refused.into_batch().len(), 1);
        assert_eq!(Rc::strong_count(&count), 1);
        let mut single = Single::of(Rc::clone(&count));
        *single.item_mut() = Rc::new(());
        assert_eq!(Rc::strong_count(&count), 1);
        assert!(!Rc::ptr_eq(&single.into_item(), &count));
    }

    #[test]
    fn one_item_unparks() {
        let queue = Queue::new();
        assert_eq!(queue.park(), crate::Park::Parked);
        assert_eq!(
            queue.push_single(Single::of(1)).ok(),
            Some(Pushed::Unparked)
        );
    }
}
