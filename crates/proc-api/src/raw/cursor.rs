//! A cursor over items that stay in the nodes of their list until the reader takes them.
//!
//! **Problem.** A scheduler keeps the events of a step in a linked list. A call through a table and
//! a freed node for each event would cost more than most steps do with an event.
//!
//! **Rejected.** Moving the events into a slice first: each event would be moved twice.
//!
//! **Protocol**
//! 1. The owner of the list makes a [`Cursor`] over its first `count` nodes.
//! 2. A [`Reader`] moves one item after the other out of its node. The nodes stay in the list.
//! 3. The owner asks the cursor how many items are [left](Cursor::left), and frees the nodes of all
//!    taken items together.
//!
//! **Why it is sound.** The nodes in front of the cursor are empty, and the nodes from it on are
//! full. Only the reader moves the cursor, and the owner changes the list only together with the
//! cursor.

use std::cell::Cell;
use std::fmt;
use std::mem::MaybeUninit;

/// A node of a list: a link to the next node, and an item.
#[repr(C)]
pub struct Node<T> {
    next: *mut Self,
    item: MaybeUninit<T>,
}

impl<T> Node<T> {
    /// Creates a node without an item. Its link is null.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            next: std::ptr::null_mut(),
            item: MaybeUninit::uninit(),
        }
    }

    /// Links `this` to `next`.
    ///
    /// # Safety
    /// `this` points to a node, and no other code uses its link meanwhile.
    #[inline]
    pub unsafe fn set_next(this: *mut Self, next: *mut Self) {
        // SAFETY: the caller lets this function use the link (precondition).
        unsafe { (*this).next = next };
    }

    /// Returns the place of the item.
    ///
    /// # Safety
    /// `this` points to a node.
    #[must_use]
    #[inline]
    pub unsafe fn event(this: *mut Self) -> *mut MaybeUninit<T> {
        // SAFETY: the pointer is to a node (precondition). No reference to the node is made.
        unsafe { &raw mut (*this).item }
    }
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Node<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").finish_non_exhaustive()
    }
}

/// The place in a list where the remaining items begin.
pub struct Cursor<T> {
    next: Cell<*mut Node<T>>,
    left: Cell<usize>,
}

impl<T> Cursor<T> {
    /// Makes a cursor over `count` items; `first` has the first.
    ///
    /// # Safety
    /// `count` nodes are linked from `first` on, and each has an item. The items belong to this
    /// thread, which takes them through this cursor alone. The nodes stay as they are until the
    /// caller calls [`set`](Self::set), or until the cursor is used for the last time. At most one
    /// [`Events`](crate::Events) uses the cursor at a time.
    #[must_use]
    #[inline]
    pub const unsafe fn new(first: *mut Node<T>, count: usize) -> Self {
        Self {
            next: Cell::new(first),
            left: Cell::new(count),
        }
    }

    /// Moves the cursor to other items.
    ///
    /// # Safety
    /// The conditions of [`new`](Self::new). No reference to an item of the cursor is in use.
    #[inline]
    pub unsafe fn set(&self, first: *mut Node<T>, count: usize) {
        self.next.set(first);
        self.left.set(count);
    }

    /// Returns the number of items that have not been taken.
    #[must_use]
    #[inline]
    pub fn left(&self) -> usize {
        self.left.get()
    }
}

impl<T> fmt::Debug for Cursor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor")
            .field("left", &self.left.get())
            .finish_non_exhaustive()
    }
}

/// The only reader of a [`Cursor`]: takes the items.
pub(crate) struct Reader<'a, T>(&'a Cursor<T>);

impl<'a, T> Reader<'a, T> {
    #[inline]
    pub(crate) fn new(cursor: &'a Cursor<T>) -> Self {
        Self(cursor)
    }

    /// Returns the number of items that are left.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.left()
    }

    /// Returns the next item, left in its node.
    #[inline]
    pub(crate) fn peek(&self) -> Option<&T> {
        // SAFETY: while an item is left, the cursor points to a full node. The item stays there
        // while this reader is borrowed, because no other reader exists (contract of
        // `Cursor::new`).
        (self.len() > 0).then(|| unsafe { (*self.0.next.get()).item.assume_init_ref() })
    }

    /// Moves a part out of the next item, and forgets the rest, which owns nothing any more. The
    /// item stays if `take` gives nothing.
    #[inline]
    pub(crate) fn next_part<R>(&mut self, take: impl FnOnce(&mut T) -> Option<R>) -> Option<R> {
        let left = self.0.left.get().checked_sub(1)?;
        let node = self.0.next.get();
        // SAFETY: while an item is left, the cursor points to a full node, and no other reader
        // reaches it (contract of `Cursor::new`).
        let part = take(unsafe { (*node).item.assume_init_mut() })?;
        self.0.left.set(left);
        // SAFETY: the node stays in the list (contract of `Cursor::new`); its item is not touched.
        self.0.next.set(unsafe { (*node).next });
        Some(part)
    }

    /// Moves the next item out of its node.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<T> {
        let left = self.0.left.get().checked_sub(1)?;
        self.0.left.set(left);
        let node = self.0.next.get();
        // SAFETY: while an item is left, the cursor points to a full node (contract of
        // `Cursor::new`). The cursor moves on to the next node, so the item is read once.
        unsafe {
            self.0.next.set((*node).next);
            Some((*node).item.assume_init_read())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_item_is_taken_once_and_an_unwanted_item_stays() {
        let mut nodes = [Node::new(), Node::new()];
        let [first, second] = &mut nodes;
        first.item.write(vec![1]);
        second.item.write(vec![2]);
        first.next = second;
        // SAFETY: the nodes have an item each, are linked, and outlive the cursor.
        let cursor = unsafe { Cursor::new(first, 2) };
        let mut reader = Reader::new(&cursor);
        assert!(reader.next_part(|_| None::<()>).is_none() && reader.len() == 2);
        // The rest of a taken item owns nothing.
        assert_eq!(
            reader.next_part(|it| Some(std::mem::take(it))),
            Some(vec![1])
        );
        assert_eq!(reader.next(), Some(vec![2]));
        assert!(reader.next_part(|it| Some(it.len())).is_none() && reader.next().is_none());
    }
}
