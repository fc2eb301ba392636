//! The node: an item and a link.
//!
//! A node lives in one of two lists. In a **chain** (a pusher's, or the chain in a queue's word)
//! `next` leads from newer to older. In a [`Batch`](super::Batch) it leads from older to newer.
//!
//! **Why a chain is walked by address.** A pusher reads the word, links its node to the node that
//! it has read, then compares and swaps. Meanwhile a drain may free the node that the pusher has
//! read, and another pusher may push a new node at the same address. The swap succeeds, and rightly
//! so: the link is the address of the newest node. But as a pointer the link belongs to the freed
//! allocation. So a pusher exposes the provenance of every node before it publishes the chain, and
//! a thread that walks a chain takes only the address from a link. Both compile to nothing.

use ganger_nodes::Returns;
use ganger_sync::cell::UnsafeCell;
use std::ptr::{self, NonNull};

/// An item and a link. Only the owner of the node's list writes them.
#[repr(C)]
pub(crate) struct Node<T> {
    next: UnsafeCell<*mut Node<T>>,
    item: UnsafeCell<T>,
}

impl<T> Node<T> {
    /// Makes a node without a successor. The caller owns it, and must [`free`](Self::free) it.
    #[inline]
    pub(crate) fn alloc(item: T) -> *mut Self {
        Self::write(ganger_nodes::allocate(), item)
    }

    /// Makes a node, as [`alloc`](Self::alloc) does, for the queue with the key `queue`. `newest`
    /// returns the address of the queue's newest node, or zero.
    #[inline]
    pub(crate) fn alloc_behind(item: T, queue: usize, newest: impl FnOnce() -> usize) -> *mut Self {
        Self::write(ganger_nodes::allocate_behind(queue, newest), item)
    }

    /// Writes a node to fresh memory.
    #[inline]
    fn write(memory: NonNull<Self>, item: T) -> *mut Self {
        let node = memory.as_ptr();
        let value = Self {
            next: UnsafeCell::new(ptr::null_mut()),
            item: UnsafeCell::new(item),
        };
        // SAFETY: fresh memory for a node.
        unsafe { node.write(value) };
        node
    }

    /// Moves the item out and gives the memory of the node back.
    ///
    /// # Safety
    /// `node` came from [`alloc`](Self::alloc), the caller owns it, and nothing uses it afterwards.
    #[inline]
    pub(crate) unsafe fn free(node: *mut Self) -> T {
        // SAFETY: the node is the caller's, and its item is not used again.
        let item = unsafe { Self::take_item(node) };
        // SAFETY: by the contract of this function, and the item has been moved out.
        unsafe { Self::free_memory(node) };
        item
    }

    /// Gives the memory of the node back, and drops nothing.
    ///
    /// # Safety
    /// As for [`free`](Self::free), and the item has been moved out.
    #[inline]
    pub(crate) unsafe fn free_memory(node: *mut Self) {
        // SAFETY: a node is not at zero. Its memory came from `allocate`, and nothing uses it
        // again.
        unsafe { ganger_nodes::free(NonNull::new_unchecked(node)) };
    }

    /// Takes the item out of the node.
    ///
    /// # Safety
    /// `node` is valid and the caller owns it. The item in it is not used again.
    #[inline]
    unsafe fn take_item(node: *mut Self) -> T {
        // SAFETY: by the contract of this function.
        unsafe { (*node).item.with(|item| item.read()) }
    }

    /// Counts the nodes of a chain; 0 for null. O(n).
    ///
    /// # Safety
    /// The nodes are valid and exposed, the last link is null, and no thread writes a link
    /// meanwhile.
    pub(crate) unsafe fn count(newest: *mut Self) -> usize {
        let mut count = 0;
        let mut node = Self::revive(newest);
        while !node.is_null() {
            count += 1;
            // SAFETY: a node of the chain, whose links no thread writes (precondition).
            node = Self::revive(unsafe { Self::next(node) });
        }
        count
    }

    /// Returns the address of the previously made node, if the two are neighbours.
    #[inline]
    pub(crate) fn before(node: *mut Self) -> *mut Self {
        node.wrapping_byte_sub(ganger_nodes::stride::<Self>())
    }

    /// Returns the address of the node `links` links behind `older`, if all nodes are as far apart
    /// as `node` and `older`.
    #[inline]
    pub(crate) fn ahead(node: *mut Self, older: *mut Self, links: isize) -> *mut Self {
        let distance = older.addr().wrapping_sub(node.addr()).cast_signed();
        older.wrapping_byte_offset(distance.wrapping_mul(links))
    }

    /// Returns the next node.
    ///
    /// # Safety
    /// `node` is valid, and no thread writes its link meanwhile.
    #[inline]
    pub(crate) unsafe fn next(node: *mut Self) -> *mut Self {
        // SAFETY: by the contract of this function.
        unsafe { (*node).next.with(|next| *next) }
    }

    /// Links the next node.
    ///
    /// # Safety
    /// `node` is valid, and the caller owns its list.
    #[inline]
    pub(crate) unsafe fn set_next(node: *mut Self, to: *mut Self) {
        // SAFETY: by the contract of this function nothing else uses the link.
        unsafe { (*node).next.with_mut(|next| *next = to) }
    }

    /// Returns the item.
    ///
    /// # Safety
    /// `node` stays valid, and no thread writes the item, for as long as the reference is used.
    #[inline]
    pub(crate) unsafe fn item<'a>(node: *mut Self) -> &'a T {
        // SAFETY: by the contract of this function.
        unsafe { (*node).item.with(|item| &*item) }
    }

    /// Returns the item, to change it.
    ///
    /// # Safety
    /// `node` stays valid, and nothing else uses the item, for as long as the reference is used.
    #[inline]
    pub(crate) unsafe fn item_mut<'a>(node: *mut Self) -> &'a mut T {
        // SAFETY: by the contract of this function.
        unsafe { (*node).item.with_mut(|item| &mut *item) }
    }

    /// Makes the node reachable through its bare address, which the walker of a chain needs.
    #[inline]
    pub(crate) fn expose(node: *mut Self) {
        node.expose_provenance();
    }

    /// Returns the node at the address of a chain's link or of a queue's word, whatever the
    /// provenance of the pointer.
    #[inline]
    pub(crate) fn revive(link: *mut Self) -> *mut Self {
        ptr::with_exposed_provenance_mut(link.addr())
    }
}

/// Memory of nodes on its way back: neighbours go back together, the last of them when this value
/// is dropped.
pub(super) struct Freed<T>(Returns<Node<T>>);

impl<T> Freed<T> {
    pub(super) const fn new() -> Self {
        Self(Returns::new())
    }

    /// Moves the item out and takes the memory of the node.
    ///
    /// # Safety
    /// As for [`Node::free`].
    #[inline]
    pub(super) unsafe fn free(&mut self, node: *mut Node<T>) -> T {
        // SAFETY: the node is the caller's, and its item is not used again.
        let item = unsafe { Node::take_item(node) };
        // SAFETY: by the contract of this function, and the item has been moved out.
        unsafe { self.forget(node) };
        item
    }

    /// Takes the memory of the node, and drops nothing.
    ///
    /// # Safety
    /// As for [`Node::free_memory`].
    #[inline]
    pub(super) unsafe fn forget(&mut self, node: *mut Node<T>) {
        // SAFETY: a node is not at zero. Its memory came from `allocate`, and nothing uses it
        // again.
        unsafe { self.0.add(NonNull::new_unchecked(node)) };
    }
}
