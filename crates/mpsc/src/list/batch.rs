//! A batch: a FIFO list owned by one thread. A drain returns it, and a receiver keeps its backlog
//! in it.
//!
//! **Problem.** A drain gets a chain of nodes, the newest first. The consumer wants the oldest
//! first, one at a time, and may keep some of them in front of the next drain's items.
//!
//! **Rejected.** Moving the items into a `VecDeque`: a copy of every item, and a growing
//! allocation. Walking the chain backwards on demand: quadratic.
//!
//! **Protocol.** [`Batch::from_newest`] reverses the links in one pass and allocates nothing. The
//! batch is then a singly linked list with known ends: items go in at either end, and whole batches
//! at the back, in constant time.

mod iter;
mod turn;

pub use iter::{BatchIntoIter, BatchIter};

use super::node::{Freed, Node};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::{mem, ptr};

/// Items in the order in which they were pushed. The owner of the batch owns them.
///
/// A batch neither blocks nor is shared. Taking an item out frees its node; adding an item
/// allocates a node. Dropping the batch drops the items one after the other, without recursion. If
/// the drop of an item panics, the other items are still dropped; if another drop panics while this
/// panic unwinds, the process aborts.
///
/// ```
/// use ganger_mpsc::{Batch, Queue};
///
/// let queue = Queue::new();
/// let _ = queue.push_all([1, 2, 3]);
/// let mut batch = queue.drain();
/// assert_eq!(batch.pop_front(), Some(1));
///
/// // What the owner keeps goes in front of what comes next.
/// let _ = queue.push(4);
/// batch.append(queue.drain());
/// assert_eq!(batch.into_iter().collect::<Vec<_>>(), [2, 3, 4]);
/// ```
pub struct Batch<T> {
    /// The oldest node, or null. The links lead from here to `back`, whose link is null.
    front: *mut Node<T>,
    /// The newest node; without a meaning while `front` is null.
    back: *mut Node<T>,
    len: usize,
}

// SAFETY: a batch owns its nodes and the items in them, and no other pointer leads to them.
unsafe impl<T: Send> Send for Batch<T> {}
// SAFETY: a shared batch only gives out shared references to the items.
unsafe impl<T: Sync> Sync for Batch<T> {}

impl<T> Batch<T> {
    /// Creates an empty batch. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            front: ptr::null_mut(),
            back: ptr::null_mut(),
            len: 0,
        }
    }

    /// Creates a batch of one item. O(1); allocates one node.
    #[inline]
    #[must_use]
    pub fn of(item: T) -> Self {
        // SAFETY: a fresh node, whose link is null.
        unsafe { Self::of_node(Node::alloc(item)) }
    }

    /// Creates a batch of one node.
    ///
    /// # Safety
    /// The caller owns the node and gives it away. Its link is null.
    #[inline]
    pub(crate) unsafe fn of_node(node: *mut Node<T>) -> Self {
        Self {
            front: node,
            back: node,
            len: 1,
        }
    }

    /// Returns whether the batch is empty. O(1).
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.front.is_null()
    }

    /// Returns the number of items. O(1).
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns the oldest item, if any. O(1).
    #[inline]
    #[must_use]
    pub fn front(&self) -> Option<&T> {
        // SAFETY: not null, so a node of this batch, which only `&mut self` can free.
        (!self.is_empty()).then(|| unsafe { Node::item(self.front) })
    }

    /// Returns the oldest item for changes, if any. O(1).
    ///
    /// ```
    /// # use ganger_mpsc::Batch;
    /// let mut batch: Batch<u8> = (1..=3).collect();
    /// if let Some(oldest) = batch.front_mut() {
    ///     *oldest += 10;
    /// }
    /// assert_eq!(batch.into_iter().collect::<Vec<_>>(), [11, 2, 3]);
    /// ```
    #[inline]
    #[must_use]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        // SAFETY: not null, so a node of this batch, which is borrowed for as long as the item.
        (!self.is_empty()).then(|| unsafe { Node::item_mut(self.front) })
    }

    /// Takes the oldest item out and frees its node. O(1).
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        // SAFETY: the node is out of the list, and this thread's.
        self.pop_node().map(|node| unsafe { Node::free(node) })
    }

    /// Frees the nodes of the `count` oldest items, and drops nothing. O(count).
    ///
    /// For callers that have moved the items out in place, which saves a move of each.
    ///
    /// # Safety
    /// The batch has at least `count` items, and the caller has moved them out.
    #[inline]
    pub unsafe fn forget(&mut self, count: usize) {
        if count == 1
            && let Some(node) = self.pop_node()
        {
            // SAFETY: the node is out of the list; its item has been moved out (precondition).
            unsafe { Node::free_memory(node) };
        } else if count > 0 {
            // SAFETY: by the contract of this function.
            unsafe { self.forget_many(count) };
        }
    }

    /// Forgets many items, as [`forget`](Self::forget) does each: the memory of neighbours goes
    /// back together.
    ///
    /// # Safety
    /// As for [`forget`](Self::forget).
    #[inline(never)]
    unsafe fn forget_many(&mut self, count: usize) {
        debug_assert!(count <= self.len, "there are fewer items");
        let (mut freed, mut node) = (Freed::new(), self.front);
        for _ in 0..count {
            // SAFETY: a node of this batch, whose item has been moved out (precondition).
            node = unsafe {
                let newer = Node::next(node);
                freed.forget(node);
                newer
            };
        }
        self.front = node;
        self.len -= count;
    }

    /// Returns the address of the oldest item's link; null if the batch is empty.
    ///
    /// A link is the address of the next item's link, or null behind the newest. The item lies
    /// where a `#[repr(C)]` structure of a pointer and a `T` has it. Only methods that change the
    /// batch write a link. Not under loom, whose cells are larger.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn links(&self) -> *mut () {
        self.front.cast()
    }

    /// Takes the oldest node out; the caller now owns it.
    #[inline]
    pub(crate) fn pop_node(&mut self) -> Option<*mut Node<T>> {
        let node = self.front;
        if node.is_null() {
            return None;
        }
        self.len -= 1;
        // SAFETY: a node of this batch.
        self.front = unsafe { Node::next(node) };
        Some(node)
    }

    /// Adds an item behind the newest. O(1); allocates one node.
    #[inline]
    pub fn push_back(&mut self, item: T) {
        let node = Node::alloc(item);
        if self.is_empty() {
            self.front = node;
        } else {
            // SAFETY: the list is not empty, so `back` is a node of this batch.
            unsafe { Node::set_next(self.back, node) };
        }
        self.back = node;
        self.len += 1;
    }

    /// Adds an item in front of the oldest. O(1); allocates one node.
    pub fn push_front(&mut self, item: T) {
        let node = Node::alloc(item);
        if self.is_empty() {
            self.back = node;
        } else {
            // SAFETY: the node is fresh, so it is this batch's.
            unsafe { Node::set_next(node, self.front) };
        }
        self.front = node;
        self.len += 1;
    }

    /// Appends all of `other` behind the newest. O(1); allocates nothing.
    pub fn append(&mut self, mut other: Self) {
        if self.is_empty() {
            mem::swap(self, &mut other);
        } else if !other.is_empty() {
            // SAFETY: neither list is empty, so both ends are nodes, and both are this thread's.
            unsafe { Node::set_next(self.back, other.front) };
            self.back = other.back;
            self.len += other.len;
            mem::forget(other);
        }
    }

    /// Takes the `count` oldest items out, or all if the batch has fewer. O(count); allocates
    /// nothing.
    ///
    /// ```
    /// # use ganger_mpsc::Batch;
    /// let mut batch: Batch<u8> = (1..=5).collect();
    /// assert_eq!(batch.split_to(2).into_iter().collect::<Vec<_>>(), [1, 2]);
    /// assert_eq!(batch.into_iter().collect::<Vec<_>>(), [3, 4, 5]);
    /// ```
    #[must_use = "the items are in the batch no longer"]
    pub fn split_to(&mut self, count: usize) -> Self {
        if count >= self.len {
            return mem::take(self);
        }
        let mut taken = Self::new();
        let Some(before) = count.checked_sub(1) else {
            return taken;
        };
        let mut last = self.front;
        for _ in 0..before {
            // SAFETY: a node of this batch, and not the last: the batch has more than `count`
            // nodes.
            last = unsafe { Node::next(last) };
        }
        (taken.front, taken.back, taken.len) = (self.front, last, count);
        // SAFETY: `last` is a node of this batch, the end of the first list.
        unsafe {
            self.front = Node::next(last);
            Node::set_next(last, ptr::null_mut());
        }
        self.len -= count;
        taken
    }

    /// Takes out the item at `index`, counted from the oldest, if present. The other items keep
    /// their order. O(index); allocates nothing.
    ///
    /// ```
    /// # use ganger_mpsc::Batch;
    /// let mut batch: Batch<u8> = (1..=4).collect();
    /// assert_eq!(batch.remove(1), Some(2));
    /// assert_eq!(batch.remove(3), None);
    /// assert_eq!(batch.into_iter().collect::<Vec<_>>(), [1, 3, 4]);
    /// ```
    pub fn remove(&mut self, index: usize) -> Option<T> {
        if index >= self.len {
            return None;
        }
        let mut older = self.split_to(index);
        let item = self.pop_front();
        older.append(mem::take(self));
        *self = older;
        item
    }
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Batch<T> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_empty() {
            // By value, so that the fields of a batch can stay in registers until here.
            drop_all(mem::take(self));
        }
    }
}

/// Drops the items one after the other. If a drop panics, the batch drops the other items.
#[cold]
fn drop_all<T>(mut batch: Batch<T>) {
    let mut freed = Freed::new();
    while let Some(node) = batch.pop_node() {
        // SAFETY: the node is out of the list, and this thread's.
        drop(unsafe { freed.free(node) });
    }
}

impl<T: fmt::Debug> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<T> Extend<T> for Batch<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, iter: I) {
        for item in iter {
            self.push_back(item);
        }
    }
}

impl<T> FromIterator<T> for Batch<T> {
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        let mut batch = Self::new();
        batch.extend(iter);
        batch
    }
}

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
mod tests;
