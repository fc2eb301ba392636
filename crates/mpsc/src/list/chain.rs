//! The chain that a pusher builds before other threads see it.

use super::{Batch, Node};
use std::{mem, ptr};

/// A list of nodes, all exposed, the newest item first. Dropping it drops the items.
pub(crate) struct Chain<T> {
    newest: *mut Node<T>,
    oldest: *mut Node<T>,
}

impl<T> Chain<T> {
    pub(crate) const fn new() -> Self {
        Self {
            newest: ptr::null_mut(),
            oldest: ptr::null_mut(),
        }
    }

    /// Adds an item in front, as the newest. O(1).
    pub(crate) fn push(&mut self, item: T) {
        let node = Node::alloc(item);
        Node::expose(node);
        // SAFETY: the node is fresh, so it is this list's.
        unsafe { Node::set_next(node, self.newest) };
        self.newest = node;
        if self.oldest.is_null() {
            self.oldest = node;
        }
    }

    /// Returns the newest and the oldest node; `None` if the chain is empty. The caller owns the
    /// nodes.
    pub(crate) fn into_ends(self) -> Option<(*mut Node<T>, *mut Node<T>)> {
        let ends = (self.newest, self.oldest);
        mem::forget(self);
        (!ends.0.is_null()).then_some(ends)
    }
}

impl<T> Drop for Chain<T> {
    fn drop(&mut self) {
        // SAFETY: the nodes are this list's, exposed, and linked down to the oldest, whose link is
        // null.
        drop(unsafe { Batch::from_newest(self.newest) });
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn a_chain_that_is_dropped_drops_its_items() {
        let count = Rc::new(());
        let mut chain = Chain::new();
        for _ in 0..3 {
            chain.push(Rc::clone(&count));
        }
        drop(chain);
        assert_eq!(Rc::strong_count(&count), 1);
    }

    #[test]
    fn an_empty_chain_has_no_ends() {
        assert!(Chain::<u8>::new().into_ends().is_none());
    }
}
