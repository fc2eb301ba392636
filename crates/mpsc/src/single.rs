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
    /// As [`Batch::of_near`].
    #[inline]
    #[must_use]
    pub fn near(item: T, key: u64) -> Self {
        Self {
            // SAFETY: a node is not at zero.
            node: unsafe { NonNull::new_unchecked(Node::alloc_near(item, key)) },
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
        let single = || Single::near(Rc::clone(&count), 7);
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
        assert_eq!((refused.len(), Rc::strong_count(&count)), (1, 2));
        drop(refused);
        assert_eq!(Rc::strong_count(&count), 1);
    }

    #[test]
    fn one_item_unparks() {
        let queue = Queue::new();
        assert_eq!(queue.park(), crate::Park::Parked);
        assert_eq!(
            queue.push_single(Single::near(1, 1)).ok(),
            Some(Pushed::Unparked)
        );
    }
}
