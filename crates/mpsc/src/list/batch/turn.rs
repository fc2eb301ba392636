//! Turning the links round: a chain of nodes becomes a batch, and a batch a chain.
//!
//! **Problem.** A walk along links waits for memory at every node: the next address is known only
//! when this node has come.
//!
//! **Protocol.** Nodes that were made one after the other are neighbours. So the walk guesses where
//! the next node is, and goes on from there while the link says the same. The processor need not
//! wait for the link, and a branch that goes as it did before is free.
//!
//! Where the nodes of several producers are mixed, a wrong guess costs more than a link. So the
//! walk gives up guessing when it is often wrong soon after it was wrong. From there on it has
//! nodes fetched ahead, at the distance of the last two.

use super::Batch;
use crate::list::Node;
use ganger_sync::hint;
use std::mem;

/// How many links ahead a walk has nodes fetched.
const AHEAD: isize = 4;

/// How often a walk may guess wrong after fewer than `WORTH` nodes since the last wrong guess.
const GUESSES: u32 = 8;
const WORTH: usize = 8;

impl<T> Batch<T> {
    /// The newest and the oldest node of the chain that the batch becomes; nothing if it is empty.
    /// The caller owns the nodes, which are exposed. O(n).
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
            // SAFETY: nodes of this batch. This one is not the newest, so it has a successor.
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
            // SAFETY: a node of this batch.
            unsafe { Node::set_next(newest, older) };
        }
        Some((newest, oldest))
    }

    /// The batch of the chain from `newest` on; an empty one for null. O(n); allocates nothing.
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
            // SAFETY: a node of the chain, which is this batch's.
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
                // A sender that serves many queues in turn leaves equal distances between the nodes
                // of one queue.
                hint::prefetch(Node::ahead(node, older, AHEAD));
            }
            if guesses > 0 && guess == older {
                node = guess;
            } else {
                let right = batch.len - mem::replace(&mut wrong, batch.len);
                guesses = guesses.saturating_sub(u32::from(right < WORTH));
                // This keeps the compiler from merging the branches, which would wait for the link
                // in both.
                std::hint::black_box(());
                node = older;
            }
        }
        batch
    }
}
