//! How items get into a queue: the pusher of the protocol at [`Queue`](super).

use super::Queue;
use crate::Batch;
use crate::error::Closed;
use crate::node::{Chain, Node};
use crate::outcome::Pushed;
use crate::single::Single;
use crate::word::Word;
use ganger_sync::atomic::{Ordering, fence};

/// The queue is closed: the chain that was to be published is still the caller's.
struct Refused;

impl<T> Queue<T> {
    /// Puts an item behind all others. One node; O(1) but for lost races.
    ///
    /// # Errors
    /// [`Closed`] with the item if the queue is closed.
    #[inline]
    pub fn push(&self, item: T) -> Result<Pushed, Closed<T>> {
        let node = Node::alloc(item);
        Node::expose(node);
        // SAFETY: the node is fresh and exposed: a chain of one, and ours.
        match unsafe { self.publish(node, node) } {
            Ok(pushed) => Ok(pushed),
            // SAFETY: it was refused, so the node is still ours.
            Err(Refused) => Err(Closed(unsafe { Node::free(node) })),
        }
    }

    /// Puts all items of `iter` behind all others, in order and with nothing of anybody else's
    /// between them, at the price of one push and a node an item.
    ///
    /// With no items it leaves the queue alone and returns [`Pushed::Queued`], even if the queue is
    /// closed. If the iterator panics, what it yielded so far is dropped.
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
        // SAFETY: the chain was ours, and its nodes are exposed.
        unsafe { self.publish_chain(chain.into_ends()) }
    }

    /// Puts all items of a batch behind all others, in order and with nothing of anybody else's between
    /// them, at the price of one push. O(n); allocates nothing.
    ///
    /// With no items it leaves the queue alone and returns [`Pushed::Queued`], even if the queue is
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
        // SAFETY: the chain was ours, and its nodes are exposed.
        unsafe { self.publish_chain(batch.into_chain()) }
    }

    /// As [`push`](Self::push), for an item that is in its node already.
    ///
    /// # Errors
    /// [`Closed`] with the item if the queue is closed.
    #[doc(hidden)]
    #[inline]
    pub fn push_single(&self, single: Single<T>) -> Result<Pushed, Closed<Single<T>>> {
        let node = single.into_node();
        Node::expose(node);
        // SAFETY: the node was ours, and is exposed: a chain of one.
        match unsafe { self.publish(node, node) } {
            Ok(pushed) => Ok(pushed),
            Err(Refused) => {
                // A publication that lost a race may have linked it to somebody's node.
                // SAFETY: it was refused, so the node is still ours.
                unsafe { Node::set_next(node, std::ptr::null_mut()) };
                // SAFETY: as above.
                Err(Closed(unsafe { Single::of_node(node) }))
            }
        }
    }

    /// Puts the chain with these ends, the newest node and the oldest, behind all others, if there is one.
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
        // SAFETY: as this function's.
        match unsafe { self.publish(newest, oldest) } {
            Ok(pushed) => Ok(pushed),
            Err(Refused) => Err(Self::take_back(newest, oldest)),
        }
    }

    /// What becomes of a chain that was refused.
    #[cold]
    fn take_back(newest: *mut Node<T>, oldest: *mut Node<T>) -> Closed<Batch<T>> {
        // A publication that lost a race may have linked the chain to somebody's node.
        // SAFETY: it was refused, so the chain is still the caller's.
        unsafe { Node::set_next(oldest, std::ptr::null_mut()) };
        // SAFETY: as above; its nodes are exposed, and its last link is null.
        Closed(unsafe { Batch::from_newest(newest) })
    }

    /// Puts the chain from `newest` to `oldest` in front of the word's.
    ///
    /// # Safety
    /// The caller owns the chain, and its nodes are exposed. If the result is `Ok`, the chain is no
    /// longer the caller's; if it is refused, the link of `oldest` leads nowhere in particular.
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
            // SAFETY: the chain is ours until it is published.
            unsafe { Node::set_next(oldest, seen.newest()) };
            // Ordering: Release pairs with the Acquire in `drain` and `close`: the items and links
            // of the chain come before it. Relaxed on failure, as for the read above.
            match self.word.compare_exchange_weak(
                seen.raw(),
                newest,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) if seen.has_items() => return Ok(Pushed::Queued),
                Ok(_) if seen == Word::PARKED => {
                    // Ordering: Acquire pairs with the Release in `park`: what the consumer did
                    // before it parked comes before what the holder of its token does.
                    fence(Ordering::Acquire);
                    return Ok(Pushed::Unparked);
                }
                Ok(_) => return Ok(Pushed::First),
                Err(now) => seen = Word::from_raw(now),
            }
        }
    }
}
