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
use crate::blocks::Set;
use crate::cache;
use crate::slab::Size;
use crate::word;
use ganger_sync::cell::UnsafeCell;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
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
            None => Self::allocate(),
        };
        Self::write(memory, item)
    }

    /// Makes a node of fresh memory.
    #[inline]
    fn write(memory: NonNull<u8>, item: T) -> *mut Self {
        let node = memory.cast::<Self>().as_ptr();
        let value = Self {
            next: UnsafeCell::new(ptr::null_mut()),
            item: UnsafeCell::new(item),
        };
        // SAFETY: fresh memory of a sufficient layout.
        unsafe { node.write(value) };
        node
    }

    /// Memory for a node that is too large or too wide for the cache.
    fn allocate() -> NonNull<u8> {
        // SAFETY: a node has a link, so its size is not zero.
        let memory = unsafe { alloc(Self::LAYOUT) };
        NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(Self::LAYOUT))
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
        match Self::SIZE {
            // SAFETY: it came from `take` with this size, and is not used any longer.
            Some(size) => unsafe { cache::give(Set::of(Self::block(node), size), size) },
            // SAFETY: it came from `allocate` with this layout.
            None => unsafe { dealloc(node.cast(), Self::LAYOUT) },
        }
    }

    /// The memory that a node is in.
    fn block(node: *mut Self) -> NonNull<u8> {
        // SAFETY: a node is not at zero.
        unsafe { NonNull::new_unchecked(node.cast()) }
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
        node.wrapping_byte_sub(Self::SIZE.map_or(0, Size::bytes))
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

/// Memory of nodes on its way back to the cache: that of neighbours goes back at once. What is left
/// goes back when it is dropped.
pub(crate) struct Freed<T> {
    /// All of them free. Empty for nodes that the cache does not keep.
    blocks: Set,
    node: PhantomData<*mut Node<T>>,
}

impl<T> Freed<T> {
    pub(crate) const fn new() -> Self {
        Self {
            blocks: Set::EMPTY,
            node: PhantomData,
        }
    }

    /// Takes the node's memory and moves the item out.
    ///
    /// # Safety
    /// As for [`Node::free`].
    #[inline]
    pub(crate) unsafe fn free(&mut self, node: *mut Node<T>) -> T {
        // SAFETY: a node, and the caller's; the item is not used in it again.
        let item = unsafe { (*node).item.with(|item| item.read()) };
        // SAFETY: as this function's, and the item has been moved out.
        unsafe { self.forget(node) };
        item
    }

    /// Takes the node's memory.
    ///
    /// # Safety
    /// As for [`Node::free_memory`].
    #[inline]
    pub(crate) unsafe fn forget(&mut self, node: *mut Node<T>) {
        let Some(size) = Node::<T>::SIZE else {
            // SAFETY: by the contract of this function.
            return unsafe { Node::free_memory(node) };
        };
        if let Some(others) = self.blocks.add(Set::of(Node::block(node), size)) {
            Self::give(others);
        }
    }

    #[inline(never)]
    fn give(blocks: Set) {
        if let Some(size) = Node::<T>::SIZE {
            // SAFETY: they came from `take` with this size, and are not used any longer.
            unsafe { cache::give(blocks, size) };
        }
    }
}

impl<T> Drop for Freed<T> {
    #[inline]
    fn drop(&mut self) {
        if !self.blocks.is_empty() {
            Self::give(self.blocks);
        }
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
