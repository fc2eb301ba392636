//! Reversing links: a chain of nodes becomes a batch, and a batch a chain.
//!
//! **Problem.** A walk along links waits for memory at every node: the next address is known only
//! when this node has arrived.
//!
//! **Protocol.** Nodes made one after the other are neighbours. So the walk guesses the address of
//! the next node, and continues from the guess while the link confirms it. The processor need not
//! wait for the link, and a branch that goes as before is free.
//!
//! Among mixed nodes of several producers, a wrong guess costs more than a link. So the walk stops
//! guessing when wrong guesses often follow each other closely. From then on it prefetches nodes,
//! at the distance of the last two.

use super::Batch;
use crate::list::Node;
use ganger_sync::hint;
use std::mem;

/// How many links ahead a walk prefetches nodes.
const AHEAD: isize = 4;

/// How often a walk may guess wrong after fewer than `WORTH` nodes since the last wrong guess.
const GUESSES: u32 = 8;
const WORTH: usize = 8;

impl<T> Batch<T> {
    /// Converts the batch into a chain, and returns its newest and oldest node; `None` if the batch
    /// is empty. The caller owns the nodes, which are exposed. O(n).
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
            // SAFETY: nodes of this batch. The node is not the newest, so it has a successor.
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

    /// Converts the chain from `newest` on into a batch; an empty batch for null. O(n); allocates
    /// nothing.
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
                // This call keeps the compiler from merging the branches, which would wait for the
                // link in both.
                std::hint::black_box(());
                node = older;
            }
        }
        batch
    }
}
