//! How a step takes its events.

use crate::{Event, Lent};
use std::collections::VecDeque;
use std::fmt;
use std::mem::MaybeUninit;

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
    queue: &'a mut (dyn EventQueue + 'a),
    /// Those of the queue, if it lends them: whoever takes them one after the other need not ask it.
    lent: Option<&'a Lent>,
    /// Where an event is put that its queue does not lend.
    spare: MaybeUninit<Event>,
}

/// Where [`Events`] are: a list that a scheduler keeps as it likes, so that events need not be moved
/// before a step takes them. For unit tests of processes, a `VecDeque` is one.
pub trait EventQueue {
    /// How many events there are.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first event, left in place.
    fn front(&self) -> Option<&Event>;

    /// Takes the first event.
    fn pop_front(&mut self) -> Option<Event>;

    /// Takes the first event for which `wanted` holds; the order of the others stays.
    fn take_where(&mut self, wanted: &mut dyn FnMut(&Event) -> bool) -> Option<Event>;

    /// Shows each event, in order.
    fn visit(&self, visit: &mut dyn FnMut(&Event));
}

impl EventQueue for VecDeque<Event> {
    fn len(&self) -> usize {
        self.len()
    }

    fn front(&self) -> Option<&Event> {
        self.front()
    }

    fn pop_front(&mut self) -> Option<Event> {
        self.pop_front()
    }

    fn take_where(&mut self, wanted: &mut dyn FnMut(&Event) -> bool) -> Option<Event> {
        let index = self.iter().position(wanted)?;
        self.remove(index)
    }

    fn visit(&self, visit: &mut dyn FnMut(&Event)) {
        self.iter().for_each(visit);
    }
}

impl<'a> Events<'a> {
    /// The events in `queue`; what is not taken stays there.
    #[inline]
    pub fn new(queue: &'a mut (dyn EventQueue + 'a)) -> Self {
        Self::of(queue, None)
    }

    /// As [`new`](Self::new), of a queue that lends its events: the same ones, and it goes by what has been taken there.
    #[doc(hidden)]
    #[inline]
    pub fn of(queue: &'a mut (dyn EventQueue + 'a), lent: Option<&'a Lent>) -> Self {
        Self {
            queue,
            lent,
            spare: MaybeUninit::uninit(),
        }
    }

    /// How many events are left.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.lent.map_or_else(|| self.queue.len(), Lent::left)
    }

    /// Whether no event is left.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next event, left in place.
    #[must_use]
    pub fn peek(&self) -> Option<&Event> {
        self.lent.map_or_else(|| self.queue.front(), Lent::peek)
    }

    /// Takes the first event for which `wanted` holds; the order of the others stays. O(events).
    pub fn take_where(&mut self, mut wanted: impl FnMut(&Event) -> bool) -> Option<Event> {
        self.queue.take_where(&mut wanted)
    }
}

impl Events<'_> {
    /// Takes the first event of a queue that does not lend it, and says where it is now.
    #[cold]
    #[inline(never)]
    fn pop_to_spare(&mut self) -> Option<*mut Event> {
        let event = self.queue.pop_front()?;
        Some(self.spare.write(event))
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    #[inline]
    fn next(&mut self) -> Option<Event> {
        // Both ways lead to a place, so that the event is moved once, to where the step has it.
        let place = match self.lent {
            Some(lent) => lent.take()?,
            None => self.pop_to_spare()?,
        };
        // SAFETY: an event is there that is ours.
        Some(unsafe { place.read() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.len();
        (left, Some(left))
    }
}

impl fmt::Debug for Events<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        self.queue.visit(&mut |event| {
            list.entry(event);
        });
        list.finish()
    }
}
