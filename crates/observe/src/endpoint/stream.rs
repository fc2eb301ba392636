//! A stream of events: the body of an answer, with room for one event.
//!
//! The process of the events puts events there, and the connection of the viewer takes them. A
//! newer event takes the place of an unread event.

use super::limits::STREAMS;
use bytes::Bytes;
use ganger_sync::sync::lock;
use hyper::body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Places for streams: each open stream has a copy.
#[derive(Default)]
pub(super) struct Places(Arc<()>);

impl Places {
    /// Opens a stream with this period; returns none while all places are taken.
    pub(super) fn open(&self, period: Duration) -> Option<(Join, Stream)> {
        let place = Arc::clone(&self.0);
        // The clones: this clone, the endpoint's, and a clone for each stream.
        if Arc::strong_count(&place) > STREAMS + 1 {
            return None;
        }
        let slot = Arc::new(Slot::default());
        let join = Join {
            slot: Arc::downgrade(&slot),
            period,
        };
        Some((
            join,
            Stream {
                slot,
                _place: place,
            },
        ))
    }
}

/// A viewer joins.
pub(super) struct Join {
    pub(super) slot: Weak<Slot>,
    pub(super) period: Duration,
}

/// The unread event of the viewer.
#[derive(Default)]
pub(super) struct Slot(Mutex<Unread>);

#[derive(Default)]
struct Unread {
    event: Option<Bytes>,
    waker: Option<Waker>,
    is_over: bool,
}

impl Slot {
    /// Replaces an unread event.
    pub(super) fn put(&self, event: Bytes) {
        let mut unread = lock(&self.0);
        unread.event = Some(event);
        let waker = unread.waker.take();
        drop(unread);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Ends the stream: no further event comes.
    pub(super) fn end(&self) {
        let mut unread = lock(&self.0);
        unread.is_over = true;
        let waker = unread.waker.take();
        drop(unread);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The body of an answer with events.
pub(super) struct Stream {
    slot: Arc<Slot>,
    _place: Arc<()>,
}

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut unread = lock(&self.slot.0);
        match unread.event.take() {
            Some(event) => Poll::Ready(Some(Ok(Frame::data(event)))),
            None if unread.is_over => Poll::Ready(None),
            None => {
                unread.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
