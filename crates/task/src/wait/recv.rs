//! The wait for a message.

use crate::step;
use crate::waits::Mark;
use ganger_proc_api::{Event, Events, Message};
use ganger_wait::watch;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{self, Poll};

/// Waits for a message: see [`Cx::recv`](crate::Cx::recv) and
/// [`Cx::recv_where`](crate::Cx::recv_where).
#[must_use = "a future does nothing unless it is awaited"]
pub struct Recv<M, P> {
    task: u64,
    mark: Mark,
    wanted: P,
    takes: PhantomData<fn(&M)>,
}

/// Any message is wanted.
#[derive(Debug)]
pub struct Any;

/// A message is wanted if the predicate holds for it.
pub struct Where<P> {
    wanted: P,
    /// The last step in which the wait has looked.
    looked: u64,
}

impl<P> Where<P> {
    pub(crate) fn new(wanted: P) -> Self {
        let looked = 0;
        Self { wanted, looked }
    }
}

impl<P> fmt::Debug for Where<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Where").finish_non_exhaustive()
    }
}

impl<M, P> Recv<M, P> {
    pub(crate) fn new(task: u64, wanted: P) -> Self {
        Self {
            task,
            mark: Mark::default(),
            wanted,
            takes: PhantomData,
        }
    }
}

impl<M, P> Unpin for Recv<M, P> {}

/// The filter of a receive.
pub trait Wanted<M: Send + 'static> {
    #[doc(hidden)]
    fn take(&mut self, events: &mut Events<'_>, step: u64) -> Option<M>;
}

impl<M: Send + 'static> Wanted<M> for Any {
    fn take(&mut self, events: &mut Events<'_>, _: u64) -> Option<M> {
        events.next_message()
    }
}

impl<M, P> Wanted<M> for Where<P>
where
    M: Send + Sync + 'static,
    P: FnMut(&M) -> bool,
{
    fn take(&mut self, events: &mut Events<'_>, step: u64) -> Option<M> {
        let only_new = self.looked + 1 == step;
        self.looked = step;
        let is_wanted = |event: &Event| {
            let message = event.message();
            message
                .and_then(Message::look)
                .is_some_and(&mut self.wanted)
        };
        let event = match events.peek() {
            Some(Event::Message(_)) if only_new => events.take_new_where(is_wanted),
            _ => events.take_where(is_wanted),
        };
        event?.into_message().ok()?.take().ok()
    }
}

impl<M, P> Future for Recv<M, P>
where
    M: Send + 'static,
    P: Wanted<M>,
{
    type Output = Option<M>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        step::poll_with(this.task, |step| {
            if !step.may_be_ready(&mut this.mark, context.waker()) {
                return Poll::Pending;
            }
            if step.cancelled().is_some() {
                step.spend();
                return Poll::Ready(None);
            }
            let has_some = step.waits.may_have_messages();
            if has_some && let Some(message) = this.wanted.take(step.events, step.waits.step) {
                step.spend();
                return Poll::Ready(Some(message));
            }
            watch::goes_on();
            step.watch(&mut this.mark, context.waker());
            Poll::Pending
        })
    }
}

impl<M, P> Drop for Recv<M, P> {
    fn drop(&mut self) {
        if self.mark.is_watching() {
            watch::leaves_messages();
        }
        step::forget(self.task, &mut self.mark);
    }
}

impl<M, P> fmt::Debug for Recv<M, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recv").finish_non_exhaustive()
    }
}
