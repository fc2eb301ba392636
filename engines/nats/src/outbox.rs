//! The frames of a lane between `send` and the socket.
//!
//! **Problem.** A client of NATS takes messages into a queue, and says nothing when the queue is
//! lost or cut. `send` must not block, and must say when it can't take more.
//!
//! **Protocol.**
//!
//! 1. A *sender* pushes a frame if fewer bytes than the room wait, and if the connection is there.
//!    If not, the outbox notes the receiver's name, and the sender keeps the frame.
//! 2. The *writer* takes frames, up to a batch, gives them to the client and waits until the
//!    client has flushed them. Only then they leave the account. So the client's own queue holds
//!    at most a batch.
//! 3. When half of the room is free, or the connection is back, the writer takes the noted names
//!    and tells these nodes' senders to go on.

use bytes::Bytes;
use ganger_cluster::NodeId;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The most bytes in the client's hands, but for a frame.
const BATCH: usize = 256 << 10;

/// A frame's cost on top of its bytes.
const OVERHEAD: usize = 128;

/// Frames on their way to the socket.
#[derive(Debug)]
pub(crate) struct Outbox {
    room: usize,
    inner: Mutex<Inner>,
    /// For the writer: frames wait.
    more: Notify,
    /// For the end: none is left.
    empty: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    queue: VecDeque<(NodeId, Bytes)>,
    /// The cost of all frames in the queue, and of the frames in the writer's hands.
    held: usize,
    /// The connection is there.
    is_open: bool,
    /// No frame is taken any more.
    is_closed: bool,
    refused: BTreeSet<NodeId>,
    counts: Counts,
}

/// Figures of a lane's way out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Frames taken by `send`.
    pub taken: u64,
    /// Frames refused by `send`: no room, or no connection.
    pub refused: u64,
    /// Frames refused by the client, because they are longer than the broker's `max_payload`, and
    /// frames that the client had when its connection broke: some of these may have left.
    pub lost: u64,
    /// Bytes on their way to the socket.
    pub held: usize,
}

impl Outbox {
    /// Creates an outbox without a connection at first.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            room,
            inner: Mutex::default(),
            more: Notify::new(),
            empty: Notify::new(),
        }
    }

    /// Takes a frame. False: not now.
    pub(crate) fn push(&self, to: &NodeId, frame: Bytes) -> bool {
        let mut inner = self.inner();
        let cost = cost(&frame);
        let has_room = inner.held == 0 || inner.held + cost <= self.room;
        if inner.is_closed || !inner.is_open || !has_room {
            inner.counts.refused += 1;
            if !inner.refused.contains(to) {
                inner.refused.insert(to.clone());
            }
            return false;
        }
        inner.held += cost;
        inner.counts.taken += 1;
        inner.queue.push_back((to.clone(), frame));
        drop(inner);
        self.more.notify_one();
        true
    }

    /// Notes the begin or the end of the connection. Returns the nodes to be told.
    pub(crate) fn set_open(&self, is_open: bool) -> Vec<NodeId> {
        let mut inner = self.inner();
        inner.is_open = is_open;
        self.writable(&mut inner)
    }

    /// Takes no more frames.
    pub(crate) fn close(&self) {
        self.inner().is_closed = true;
    }

    /// Takes the next frames, at most [`BATCH`] bytes or a frame, and their cost.
    pub(crate) async fn next(&self) -> (Vec<(NodeId, Bytes)>, usize) {
        loop {
            let (batch, cost) = self.take();
            if !batch.is_empty() {
                return (batch, cost);
            }
            self.more.notified().await;
        }
    }

    fn take(&self) -> (Vec<(NodeId, Bytes)>, usize) {
        let mut inner = self.inner();
        let mut batch = Vec::new();
        let mut sum = 0;
        while sum < BATCH
            && let Some((to, frame)) = inner.queue.pop_front()
        {
            sum += cost(&frame);
            batch.push((to, frame));
        }
        (batch, sum)
    }

    /// Notes a batch that is with the system, but for some lost frames. Returns the nodes that may
    /// send again.
    pub(crate) fn flushed(&self, cost: usize, lost: u64) -> Vec<NodeId> {
        let mut inner = self.inner();
        inner.held -= cost;
        inner.counts.lost += lost;
        if inner.held == 0 {
            self.empty.notify_one();
        }
        self.writable(&mut inner)
    }

    fn writable(&self, inner: &mut Inner) -> Vec<NodeId> {
        if inner.is_open && !inner.is_closed && inner.held <= self.room / 2 {
            std::mem::take(&mut inner.refused).into_iter().collect()
        } else {
            Vec::new()
        }
    }

    /// Waits until all frames have been flushed. For a single waiter.
    pub(crate) async fn emptied(&self) {
        while self.inner().held > 0 {
            self.empty.notified().await;
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let inner = self.inner();
        Counts {
            held: inner.held,
            ..inner.counts
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.inner().is_open
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cost(frame: &Bytes) -> usize {
    frame.len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> NodeId {
        NodeId::new(text).unwrap()
    }

    fn frame(length: usize) -> Bytes {
        Bytes::from(vec![7; length])
    }

    fn open(room: usize) -> Outbox {
        let outbox = Outbox::new(room);
        assert!(outbox.set_open(true).is_empty());
        outbox
    }

    #[test]
    fn a_full_outbox_refuses_and_tells_each_node_once_when_half_is_free() {
        let outbox = open(1000);
        let (a, b) = (name("a"), name("b"));
        assert!(outbox.push(&a, frame(300)) && outbox.push(&a, frame(300)));
        for to in [&a, &b, &a] {
            assert!(!outbox.push(to, frame(300)));
        }
        // A small frame still fits.
        assert!(outbox.push(&b, frame(1)));
        let (batch, cost) = outbox.take();
        assert_eq!((batch.len(), cost), (3, 601 + 3 * OVERHEAD));
        assert_eq!(
            outbox.counts().held,
            cost,
            "the client has them, not the socket"
        );
        assert!(!outbox.push(&b, frame(300)));
        assert_eq!(outbox.flushed(400, 0), [], "more than half is held");
        assert_eq!(outbox.flushed(cost - 400, 1), [a.clone(), b]);
        assert_eq!(outbox.flushed(0, 0), []);
        assert!(outbox.push(&a, frame(300)));
        let expected = Counts {
            taken: 4,
            refused: 4,
            lost: 1,
            held: 300 + OVERHEAD,
        };
        assert_eq!(outbox.counts(), expected);
    }

    #[test]
    fn an_empty_outbox_takes_a_frame_of_any_length() {
        let outbox = open(10);
        assert!(outbox.push(&name("a"), frame(1 << 20)));
        assert!(!outbox.push(&name("a"), frame(1)));
    }

    #[test]
    fn without_a_connection_nothing_is_taken_and_what_was_taken_stays() {
        let outbox = Outbox::new(10_000);
        let a = name("a");
        assert!(!outbox.push(&a, frame(1)));
        assert_eq!(outbox.set_open(true).len(), 1);
        assert!(outbox.push(&a, frame(1)));
        assert_eq!(outbox.set_open(false), []);
        assert!(!outbox.push(&a, frame(1)));
        assert_eq!(outbox.flushed(0, 0), [], "not while the connection is away");
        assert_eq!(outbox.set_open(true).len(), 1);
        assert_eq!(outbox.take().0, [(a.clone(), frame(1))]);
        outbox.close();
        assert!(!outbox.push(&a, frame(1)));
        assert_eq!(outbox.set_open(true), [], "a closed outbox has no room");
    }

    #[test]
    fn a_batch_is_bounded() {
        let outbox = open(4 << 20);
        for _ in 0..20 {
            assert!(outbox.push(&name("a"), frame(60_000)));
        }
        let (batch, cost) = outbox.take();
        assert_eq!(batch.len(), 5);
        assert!((BATCH..BATCH + 60_000 + OVERHEAD).contains(&cost));
    }
}
