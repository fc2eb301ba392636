//! A chain of nodes becomes a batch, and a batch a chain: the links are turned round.
//!
//! **Why the walk guesses.** Nodes that were made one after the other are neighbours. A link that has to
//! be read before the next one can be makes a processor wait; an address that was computed does not,
//! and a branch on whether the two are the same is free as long as they are. When producers mix they
//! are not, and a branch that goes wrong costs more than a link: so the walk gives up guessing when it is
//! often wrong soon after it was wrong.

use super::Batch;
use crate::node::Node;
use ganger_sync::hint;
use std::mem;

/// How many links ahead of it a walk has nodes fetched.
const AHEAD: isize = 4;

/// How often a walk may guess wrong after fewer right guesses than it takes to be worth it.
const GUESSES: u32 = 8;
const WORTH: usize = 8;

impl<T> Batch<T> {
    /// Turns the links round: the newest node, from which they lead to the oldest, and that. The caller
    /// owns the nodes, which are exposed.
    #[inline]
    pub(crate) fn into_chain(self) -> Option<(*mut Node<T>, *mut Node<T>)> {
        let (oldest, newest) = (self.front, self.back);
        if oldest.is_null() {
            return None;
        }
        mem::forget(self);
        Node::expose(oldest);
        let (mut older, mut node) = (oldest, oldest);
        while node != newest {
            // SAFETY: nodes of ours; this one is not the last, so that there is another behind it.
            unsafe {
                let newer = Node::next(node);
                if node != oldest {
                    Node::set_next(node, older);
                }
                (older, node) = (node, newer);
            }
            Node::expose(node);
        }
        if newest != oldest {
            // SAFETY: as above.
            unsafe { Node::set_next(newest, older) };
        }
        Some((newest, oldest))
    }

    /// The batch that holds the chain from `newest` on, or an empty one for null. O(n).
    ///
    /// # Safety
    /// The caller owns the chain and gives it away. Its nodes are exposed, and its last link is
    /// null.
    pub(crate) unsafe fn from_newest(newest: *mut Node<T>) -> Self {
        let mut batch = Self::new();
        let mut node = Node::revive(newest);
        if node.is_null() {
            return batch;
        }
        batch.back = node;
        let (mut guesses, mut wrong) = (GUESSES, 0);
        loop {
            // SAFETY: a node of the chain, which the caller gave us.
            let older = unsafe {
                let older = Node::revive(Node::next(node));
                Node::set_next(node, batch.front);
                older
            };
            batch.front = node;
            batch.len += 1;
            if older.is_null() {
                break;
            }
            let guess = Node::before(node);
            if guesses == 0 {
                // One who sends to many in turn leaves the same distance between any two of these.
                hint::prefetch(Node::ahead(node, older, AHEAD));
            }
            if guesses > 0 && guess == older {
                node = guess;
            } else {
                let right = batch.len - mem::replace(&mut wrong, batch.len);
                guesses = guesses.saturating_sub(u32::from(right < WORTH));
                // Without it the compiler would see that both are the same.
                std::hint::black_box(());
                node = older;
            }
        }
        batch
    }
}
