//! What a step receives.

use crate::{CancelReason, CommandError, Message, Payload, Tag};
use std::collections::VecDeque;
use std::fmt;

/// Something that happened to a process since its last step.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// Somebody sent a message.
    Message(Message),
    /// A command that the process yielded has been carried out, or has failed.
    Completion(Completion),
    /// The process is asked to finish; it decides how.
    Cancel(CancelReason),
    /// Somebody sent a control message, which overtakes messages and completions. In a box, so that other
    /// events are no larger for it.
    Control(Box<Message>),
}

// It is moved into each batch and out again.
const _: () = assert!(size_of::<Event>() == 56 && size_of::<Event>() == size_of::<Message>());

/// The answer to one yield.
#[derive(Debug)]
pub struct Completion {
    /// The tag that the process gave the yield.
    pub tag: Tag,
    /// The command's result.
    pub result: Result<Payload, CommandError>,
}

/// The events of one step, taken by value, as an iterator: first cancellations and control messages, then
/// the others, each in the order of their arrival.
///
/// What a step does not take is kept, in order, in front of the next step's events of its kind, and does
/// not by itself cause a next step: a process that waits for something particular may leave the rest
/// where it is (selective receive).
///
/// ```
/// use ganger_proc_api::{Event, Events, Message};
/// use std::collections::VecDeque;
///
/// let mut queue: VecDeque<_> =
///     ["noise", "reply", "noise"].map(|topic| Event::Message(Message::new(topic, ()))).into();
/// let mut events = Events::new(&mut queue);
/// let reply = events.take_where(|event| matches!(event, Event::Message(m) if m.topic == "reply"));
/// assert!(reply.is_some());
/// assert_eq!(queue.len(), 2);
/// ```
pub struct Events<'a> {
    queue: &'a mut VecDeque<Event>,
}

impl<'a> Events<'a> {
    /// The events in `queue`; what is not taken stays there.
    pub fn new(queue: &'a mut VecDeque<Event>) -> Self {
        Self { queue }
    }

    /// How many events are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether no event is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The next event, left in place.
    #[must_use]
    pub fn peek(&self) -> Option<&Event> {
        self.queue.front()
    }

    /// Takes the first event for which `wanted` holds; the order of the others stays. O(events).
    pub fn take_where(&mut self, wanted: impl FnMut(&Event) -> bool) -> Option<Event> {
        let index = self.queue.iter().position(wanted)?;
        self.queue.remove(index)
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        self.queue.pop_front()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.queue.len(), Some(self.queue.len()))
    }
}

impl fmt::Debug for Events<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.queue.iter()).finish()
    }
}
