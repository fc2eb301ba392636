//! The node that carries one item, and the chain that a pusher builds before anybody sees it.
//!
//! A node lives in one of two lists. In a **chain** (a pusher's, or the one in a queue's word)
//! `next` leads from newer to older. In a [`Batch`] it leads from older to newer. Turning the one
//! into the other is [`Batch::from_newest`].
//!
//! **Why a chain is walked by address.** A pusher links its node in front of the value that it has
//! read, then compares and swaps. Between the two, the node that it read may be drained and freed,
//! and another one allocated at the same address and pushed. The swap succeeds, and rightly so: the
//! link is the address of the node that is now the newest. But as a pointer it belongs to the
//! allocation that is gone. So every node of a chain exposes its provenance before it is published,
//! and whoever walks the chain takes only the address from a link. Both compile to nothing.

use crate::Batch;
use crate::cache::{self, Size};
use crate::word;
use ganger_sync::cell::UnsafeCell;
use std::alloc::{Layout, dealloc};
use std::ptr::{self, NonNull};

/// One item and a link. `next` is written by whoever owns the list that the node is in, and the
/// item is not written after creation.
#[repr(C)]
pub(crate) struct Node<T> {
    next: UnsafeCell<*mut Node<T>>,
    item: UnsafeCell<T>,
}

impl<T> Node<T> {
    /// The word keeps its tags in the low bits of a node's address.
    const TAGS_FIT: () = assert!(align_of::<Self>() > word::TAGS);

    const LAYOUT: Layout = Layout::new::<Self>();

    /// The size of the blocks that nodes live in; `None` for nodes that the cache does not keep.
    const SIZE: Option<Size> = if cfg!(loom) {
        None
    } else {
        Size::of(Self::LAYOUT)
    };

    /// From the cache, or one allocation. The caller owns the node and must [`free`](Self::free) it.
    #[inline]
    pub(crate) fn alloc(item: T) -> *mut Self {
        const { Self::TAGS_FIT };
        let memory = match Self::SIZE {
            Some(size) => cache::take(size),
            None => cache::allocate(Self::LAYOUT),
        };
        let node = memory.cast::<Self>().as_ptr();
        let value = Self {
            next: UnsafeCell::new(ptr::null_mut()),
            item: UnsafeCell::new(item),
        };
        // SAFETY: fresh memory of a sufficient layout.
        unsafe { node.write(value) };
        node
    }

    /// Gives the node's memory back and moves the item out.
    ///
    /// # Safety
    /// `node` came from [`alloc`](Self::alloc), the caller owns it, and nobody uses it afterwards.
    #[inline]
    pub(crate) unsafe fn free(node: *mut Self) -> T {
        // SAFETY: a node, and the caller's; it is not used as one afterwards.
        let value = unsafe { node.read() };
        match Self::SIZE {
            // SAFETY: it came from `take` with this size.
            Some(size) => unsafe { cache::give(NonNull::new_unchecked(node.cast()), size) },
            // SAFETY: it came from `allocate` with this layout.
            None => unsafe { dealloc(node.cast(), Self::LAYOUT) },
        }
        value.item.into_inner()
    }

    /// How many nodes a chain has; none for null.
    ///
    /// # Safety
    /// The nodes are valid and exposed, the last link is null, and nobody writes a link meanwhile.
    pub(crate) unsafe fn count(newest: *mut Self) -> usize {
        let mut count = 0;
        let mut node = Self::revive(newest);
        while !node.is_null() {
            count += 1;
            // SAFETY: a node of the chain (precondition).
            node = Self::revive(unsafe { Self::next(node) });
        }
        count
    }

    /// Frees a chain, or nothing for null, and puts its items behind those of `items`, the newest
    /// first.
    ///
    /// # Safety
    /// The caller owns the chain, and nobody uses it afterwards. Its nodes are exposed, and its last
    /// link is null.
    pub(crate) unsafe fn free_chain(newest: *mut Self, items: &mut Vec<T>) {
        let mut node = Self::revive(newest);
        while !node.is_null() {
            if items.len() == items.capacity() {
                items.reserve(Self::SIZE.map_or(1, cache::room));
            }
            // Asked again, after the allocator, which may use queues itself.
            let room = items.capacity() - items.len();
            let most = Self::SIZE.map_or(1, cache::room).min(room);
            let (first, mut last, mut count) = (node, node, 0);
            while !node.is_null() && count < most {
                last = node;
                // SAFETY: a node of the chain, whose item is not used in it again.
                unsafe {
                    let older = Self::revive(Self::next(node));
                    Self::set_next(node, older);
                    items.push((*node).item.with(|item| item.read()));
                    node = older;
                }
                count += 1;
            }
            match Self::SIZE {
                // SAFETY: a list of blocks that came from `take` with this size, and are ours.
                Some(size) => unsafe { cache::give_list(first.cast(), last.cast(), count, size) },
                // SAFETY: one node, which came from `allocate` with this layout, and is ours.
                None => unsafe { dealloc(first.cast(), Self::LAYOUT) },
            }
        }
    }

    /// # Safety
    /// `node` is valid, and nobody writes its link meanwhile.
    #[inline]
    pub(crate) unsafe fn next(node: *mut Self) -> *mut Self {
        // SAFETY: valid, and not written meanwhile (precondition).
        unsafe { (*node).next.with(|next| *next) }
    }

    /// # Safety
    /// `node` is valid and the caller owns the list that it is in.
    #[inline]
    pub(crate) unsafe fn set_next(node: *mut Self, to: *mut Self) {
        // SAFETY: valid, and used by nobody else (precondition).
        unsafe { (*node).next.with_mut(|next| *next = to) }
    }

    /// # Safety
    /// `node` stays valid and is not freed for as long as the reference is used.
    #[inline]
    pub(crate) unsafe fn item<'a>(node: *mut Self) -> &'a T {
        // SAFETY: valid for 'a (precondition), and no item is written after creation.
        unsafe { (*node).item.with(|item| &*item) }
    }

    /// Lets the node be reached through its bare address from now on: what a chain's walker needs.
    #[inline]
    pub(crate) fn expose(node: *mut Self) {
        node.expose_provenance();
    }

    /// The node that a chain's link or a queue's word means, whatever allocation the pointer was
    /// made for.
    #[inline]
    pub(crate) fn revive(link: *mut Self) -> *mut Self {
        ptr::with_exposed_provenance_mut(link.addr())
    }
}

/// A chain that nobody else sees yet, the newest item first. Dropping it drops the items.
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

    /// Puts an item in front, as the newest.
    pub(crate) fn push(&mut self, item: T) {
        let node = Node::alloc(item);
        Node::expose(node);
        // SAFETY: the node is fresh, so it is ours.
        unsafe { Node::set_next(node, self.newest) };
        self.newest = node;
        if self.oldest.is_null() {
            self.oldest = node;
        }
    }

    /// The newest and the oldest node, or nothing if the chain is empty. The caller owns the nodes.
    pub(crate) fn into_ends(self) -> Option<(*mut Node<T>, *mut Node<T>)> {
        let ends = (self.newest, self.oldest);
        std::mem::forget(self);
        (!ends.0.is_null()).then_some(ends)
    }
}

impl<T> Drop for Chain<T> {
    fn drop(&mut self) {
        // SAFETY: the nodes are ours, exposed, and linked down to the oldest, whose link is null.
        drop(unsafe { Batch::from_newest(self.newest) });
    }
}

#[cfg(all(test, not(loom)))]
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
