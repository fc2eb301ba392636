//! The pusher's side of the [protocol](super).

use super::word::Word;
use super::{Closed, Pushed, Queue};
use crate::list::{Batch, Chain, Node, Single};
use ganger_sync::atomic::{Ordering, fence};

/// The queue is closed: the unpublished chain is still the caller's.
struct Refused;

impl<T> Queue<T> {
    /// Pushes an item behind all others. O(1) except for lost races; allocates one node.
    ///
    /// # Errors
    /// [`Closed`] with the item if the queue is closed.
    #[inline]
    pub fn push(&self, item: T) -> Result<Pushed, Closed<T>> {
        let node = Node::alloc(item);
        Node::expose(node);
        // SAFETY: the node is fresh and exposed: a chain of one, and this thread's.
        match unsafe { self.publish(node, node) } {
            Ok(pushed) => Ok(pushed),
            // SAFETY: the push was refused, so the node is still this thread's.
            Err(Refused) => Err(Closed(unsafe { Node::free(node) })),
        }
    }

    /// Pushes all items of `iter` behind all others, in order and with no other item between them,
    /// by one push. O(n); allocates one node an item.
    ///
    /// Without items it leaves the queue alone and returns [`Pushed::Queued`], even if the queue is
    /// closed. If the iterator panics, the items already yielded are dropped.
    ///
    /// # Errors
    /// [`Closed`] with all the items if the queue is closed.
    ///
    /// ```
    /// # use ganger_mpsc::{Pushed, Queue};
    /// let queue = Queue::new();
    /// assert_eq!(queue.push_all(1..=3).unwrap(), Pushed::First);
    /// assert_eq!(queue.push_all([]).unwrap(), Pushed::Queued);
    /// let _ = queue.close();
    /// let refused = queue.push_all(4..=5).unwrap_err().into_inner();
    /// assert_eq!(refused.into_iter().collect::<Vec<_>>(), [4, 5]);
    /// ```
    pub fn push_all(&self, iter: impl IntoIterator<Item = T>) -> Result<Pushed, Closed<Batch<T>>> {
        let mut chain = Chain::new();
        for item in iter {
            chain.push(item);
        }
        // SAFETY: the chain is this thread's, and its nodes are exposed.
        unsafe { self.publish_chain(chain.into_ends()) }
    }

    /// Pushes all items of a batch behind all others, in order and with no other item between them,
    /// by one push. O(n); allocates nothing.
    ///
    /// Without items it leaves the queue alone and returns [`Pushed::Queued`], even if the queue is
    /// closed.
    ///
    /// # Errors
    /// [`Closed`] with all the items if the queue is closed.
    ///
    /// ```
    /// # use ganger_mpsc::{Batch, Pushed, Queue};
    /// let queue = Queue::new();
    /// assert_eq!(queue.push_batch(Batch::of(1)).unwrap(), Pushed::First);
    /// assert_eq!(queue.push_batch((2..=3).collect()).unwrap(), Pushed::Queued);
    /// assert_eq!(queue.close().batch.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    /// let refused = queue.push_batch((4..=5).collect()).unwrap_err().into_inner();
    /// assert_eq!(refused.into_iter().collect::<Vec<_>>(), [4, 5]);
    /// ```
    #[inline]
    pub fn push_batch(&self, batch: Batch<T>) -> Result<Pushed, Closed<Batch<T>>> {
        // SAFETY: the chain is this thread's, and its nodes are exposed.
        unsafe { self.publish_chain(batch.into_chain()) }
    }

    /// Pushes an item that is already in its node behind all others. O(1) except for lost races;
    /// allocates nothing.
    ///
    /// # Errors
    /// [`Closed`] with the item if the queue is closed.
    #[doc(hidden)]
    #[inline]
    pub fn push_single(&self, single: Single<T>) -> Result<Pushed, Closed<Single<T>>> {
        let node = single.into_node();
        Node::expose(node);
        // SAFETY: the node is this thread's, and exposed: a chain of one.
        match unsafe { self.publish(node, node) } {
            Ok(pushed) => Ok(pushed),
            Err(Refused) => {
                // A lost race may have linked it to another thread's node.
                // SAFETY: the push was refused, so the node is still this thread's.
                unsafe { Node::set_next(node, std::ptr::null_mut()) };
                // SAFETY: the node is this thread's, and its link is null.
                Err(Closed(unsafe { Single::of_node(node) }))
            }
        }
    }

    /// Pushes the chain with these ends, the newest and the oldest node, if any, behind all others.
    ///
    /// # Safety
    /// The caller owns the chain and gives it away. Its nodes are exposed.
    #[inline]
    unsafe fn publish_chain(
        &self,
        ends: Option<(*mut Node<T>, *mut Node<T>)>,
    ) -> Result<Pushed, Closed<Batch<T>>> {
        let Some((newest, oldest)) = ends else {
            return Ok(Pushed::Queued);
        };
        // SAFETY: by the contract of this function.
        match unsafe { self.publish(newest, oldest) } {
            Ok(pushed) => Ok(pushed),
            Err(Refused) => Err(Self::take_back(newest, oldest)),
        }
    }

    /// Converts a refused chain back to a batch.
    #[cold]
    fn take_back(newest: *mut Node<T>, oldest: *mut Node<T>) -> Closed<Batch<T>> {
        // A lost race may have linked the chain to another thread's node.
        // SAFETY: the push was refused, so the chain is still this thread's.
        unsafe { Node::set_next(oldest, std::ptr::null_mut()) };
        // SAFETY: the chain is this thread's, its nodes are exposed, and its last link is null.
        Closed(unsafe { Batch::from_newest(newest) })
    }

    /// Puts the chain from `newest` to `oldest` in front of the chain in the word.
    ///
    /// # Safety
    /// The caller owns the chain, and its nodes are exposed. After `Ok` the queue owns the chain.
    /// After `Refused` the caller still owns it, and the link of `oldest` may lead anywhere.
    #[inline]
    unsafe fn publish(
        &self,
        newest: *mut Node<T>,
        oldest: *mut Node<T>,
    ) -> Result<Pushed, Refused> {
        // Ordering: Relaxed, because nothing is read through it: only its address becomes a link.
        let mut seen = Word::from_raw(self.word.load(Ordering::Relaxed));
        loop {
            if seen.is_closed() {
                // Ordering: Acquire pairs with the Release in `seal` and `close`.
                fence(Ordering::Acquire);
                return Err(Refused);
            }
            // SAFETY: the chain is this thread's until it is published.
            unsafe { Node::set_next(oldest, seen.newest()) };
            // Ordering: Release pairs with the Acquire in `take_chain`, `close` and `count`, for
            // the items and links of the chain. Relaxed on failure, because nothing is read through
            // it.
            match self.word.compare_exchange_weak(
                seen.raw(),
                newest,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) if seen.has_items() => return Ok(Pushed::Queued),
                Ok(_) if seen == Word::PARKED => {
                    // Ordering: Acquire pairs with the Release in `park`: the consumer's actions
                    // before it parked happen before the actions of the token's holder.
                    fence(Ordering::Acquire);
                    return Ok(Pushed::Unparked);
                }
                Ok(_) => return Ok(Pushed::First),
                Err(now) => seen = Word::from_raw(now),
            }
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::queue::Park;
    use std::rc::Rc;

    #[test]
    fn one_item_goes_in_as_a_batch_of_one_does() {
        let count = Rc::new(());
        let single = || Single::of(Rc::clone(&count));
        let queue = Queue::new();
        assert_eq!(queue.push_single(single()).ok(), Some(Pushed::First));
        assert_eq!(queue.push_single(single()).ok(), Some(Pushed::Queued));
        assert_eq!(queue.drain().len(), 2);
        assert_eq!(Rc::strong_count(&count), 1);

        let _ = queue.close();
        let refused = queue.push_single(single()).err().unwrap().into_inner();
        assert!(Rc::ptr_eq(refused.item(), &count));
        assert_eq!(Rc::strong_count(&count), 2);
        // Wherever its link led, it is a single item again.
        assert_eq!(refused.into_batch().len(), 1);
        assert_eq!(Rc::strong_count(&count), 1);
    }

    #[test]
    fn one_item_unparks() {
        let queue = Queue::new();
        assert_eq!(queue.park(), Park::Parked);
        let pushed = queue.push_single(Single::of(1)).ok();
        assert_eq!(pushed, Some(Pushed::Unparked));
    }
}
