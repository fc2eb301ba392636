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
use crate::word;
use ganger_nodes::Returns;
use ganger_sync::cell::UnsafeCell;
use std::ptr::{self, NonNull};

/// One item and a link. `next` is written by whoever owns the list that the node is in, and the
/// item is not written after creation, but by who owns the list.
#[repr(C)]
pub(crate) struct Node<T> {
    next: UnsafeCell<*mut Node<T>>,
    item: UnsafeCell<T>,
}

impl<T> Node<T> {
    /// The word keeps its tags in the low bits of a node's address.
    const TAGS_FIT: () = assert!(align_of::<Self>() > word::TAGS);

    /// Makes a node. The caller owns it, and must [`free`](Self::free) it.
    #[inline]
    pub(crate) fn alloc(item: T) -> *mut Self {
        const { Self::TAGS_FIT };
        let node = ganger_nodes::allocate::<Self>().as_ptr();
        let value = Self {
            next: UnsafeCell::new(ptr::null_mut()),
            item: UnsafeCell::new(item),
        };
        // SAFETY: fresh memory for a node.
        unsafe { node.write(value) };
        node
    }

    /// Gives the node's memory back and moves the item out.
    ///
    /// # Safety
    /// `node` came from [`alloc`](Self::alloc), the caller owns it, and nobody uses it afterwards.
    #[inline]
    pub(crate) unsafe fn free(node: *mut Self) -> T {
        // SAFETY: a node, and the caller's; the item is not used in it again.
        let item = unsafe { (*node).item.with(|item| item.read()) };
        // SAFETY: as this function's, and the item has been moved out.
        unsafe { Self::free_memory(node) };
        item
    }

    /// Gives the node's memory back.
    ///
    /// # Safety
    /// As for [`free`](Self::free), and the item has been moved out.
    #[inline]
    pub(crate) unsafe fn free_memory(node: *mut Self) {
        // SAFETY: a node is not at zero; its memory is from `allocate`, and nothing uses it any longer.
        unsafe { ganger_nodes::free(NonNull::new_unchecked(node)) };
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

    /// Where the node that was made before this one would be if they were neighbours.
    #[inline]
    pub(crate) fn before(node: *mut Self) -> *mut Self {
        node.wrapping_byte_sub(ganger_nodes::stride::<Self>())
    }

    /// Where the node would be that is so many links behind `older`, if all were as far apart as `node` and
    /// that.
    #[inline]
    pub(crate) fn ahead(node: *mut Self, older: *mut Self, links: isize) -> *mut Self {
        let distance = older.addr().wrapping_sub(node.addr()).cast_signed();
        older.wrapping_byte_offset(distance.wrapping_mul(links))
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
        // SAFETY: valid for 'a (precondition), and not written meanwhile, because who owns the list can do so
        // only through a `&mut` to it.
        unsafe { (*node).item.with(|item| &*item) }
    }

    /// # Safety
    /// `node` is valid, the caller owns the list that it is in, and uses it for nothing else for as long as
    /// the reference is used.
    #[inline]
    pub(crate) unsafe fn item_mut<'a>(node: *mut Self) -> &'a mut T {
        // SAFETY: valid for 'a, and used by nobody else (precondition).
        unsafe { (*node).item.with_mut(|item| &mut *item) }
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

/// Memory of nodes on its way back: neighbours go back together, the last of them when this is
/// dropped.
pub(crate) struct Freed<T>(Returns<Node<T>>);

impl<T> Freed<T> {
    pub(crate) const fn new() -> Self {
        Self(Returns::new())
    }

    /// Takes the node's memory and moves the item out.
    ///
    /// # Safety
    /// As for [`Node::free`].
    #[inline]
    pub(crate) unsafe fn free(&mut self, node: *mut Node<T>) -> T {
        // SAFETY: a node, and the caller's; the item is not used in it again.
        let item = unsafe { (*node).item.with(|item| item.read()) };
        // SAFETY: by the contract of this function, and the item has been moved out.
        unsafe { self.forget(node) };
        item
    }

    /// Takes the node's memory.
    ///
    /// # Safety
    /// As for [`Node::free_memory`].
    #[inline]
    pub(crate) unsafe fn forget(&mut self, node: *mut Node<T>) {
        // SAFETY: a node is not at zero; its memory is from `allocate`, and nothing uses it any longer.
        unsafe { self.0.add(NonNull::new_unchecked(node)) };
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
