//! How a step takes its events.

use super::Event;
use crate::commands::CommandError;
use crate::raw::{Cursor, Node, Reader};
use crate::values::Payload;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::mem;

/// A node of a list of events.
pub type EventNode = Node<Event>;

/// A cursor over events in a scheduler's list.
pub type EventCursor = Cursor<Event>;

/// The events of a step, as an iterator by value.
///
/// First come system events: cancellations, control messages and notices of ended processes. Then
/// come messages and completions. Each group is in the order of arrival.
///
/// Events that a step leaves are kept, in order, in front of the next step's events of their group.
/// They do not cause a step by themselves. So a process that waits for a particular event may leave
/// all other events in the queue (selective receive).
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
    /// Takes the queue's events out of their nodes, where the queue permits it.
    reader: Option<Reader<'a, Event>>,
}

/// The list behind [`Events`]. Each scheduler keeps it in its own form, so that events need not be
/// moved before a step takes them. For unit tests of processes, a `VecDeque` is such a list.
pub trait EventQueue {
    /// Returns the number of events.
    fn len(&self) -> usize;

    /// Returns whether the list is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the first event, left in place.
    fn front(&self) -> Option<&Event>;

    /// Takes the first event.
    fn pop_front(&mut self) -> Option<Event>;

    /// Takes the first event for which `wanted` holds. The rest keeps its order.
    fn take_where(&mut self, wanted: &mut dyn FnMut(&Event) -> bool) -> Option<Event>;

    /// Takes an event as [`take_where`](Self::take_where) does, without system events, and without
    /// messages and completions left by earlier steps. A queue without this distinction looks at
    /// all events.
    #[doc(hidden)]
    fn take_new_where(&mut self, wanted: &mut dyn FnMut(&Event) -> bool) -> Option<Event> {
        self.take_where(wanted)
    }

    /// Calls `visit` with each event, in order.
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
    /// Creates the list of the events in `queue`. Events that the step leaves stay there.
    #[inline]
    pub fn new(queue: &'a mut (dyn EventQueue + 'a)) -> Self {
        Self::of(queue, None)
    }

    /// Creates the events as [`new`](Self::new) does. A cursor must be over all events of `queue`;
    /// it tells the queue how many events have been taken.
    #[doc(hidden)]
    #[inline]
    pub fn of(queue: &'a mut (dyn EventQueue + 'a), cursor: Option<&'a EventCursor>) -> Self {
        Self {
            queue,
            reader: cursor.map(Reader::new),
        }
    }

    /// Returns the number of events left, withdrawn notices included.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        match &self.reader {
            Some(reader) => reader.len(),
            None => self.queue.len(),
        }
    }

    /// Returns whether no event is left.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the next event, left in place. It may be a withdrawn notice;
    /// [`next`](Iterator::next) passes it over.
    #[must_use]
    pub fn peek(&self) -> Option<&Event> {
        match &self.reader {
            Some(reader) => reader.peek(),
            None => self.queue.front(),
        }
    }

    /// Takes the first event for which `wanted` holds. The rest keeps its order. O(events).
    pub fn take_where(&mut self, mut wanted: impl FnMut(&Event) -> bool) -> Option<Event> {
        let mut has_withdrawn = false;
        let taken = self.queue.take_where(&mut |event| {
            if is_withdrawn(event) {
                has_withdrawn = true;
                return false;
            }
            wanted(event)
        });
        // Removes withdrawn notices: otherwise they pile up in a process that takes all events in
        // this way.
        while has_withdrawn && self.queue.take_where(&mut is_withdrawn).is_some() {}
        taken
    }

    /// Takes an event as [`take_where`](Self::take_where) does, at least among the new messages and
    /// completions: for crates whose earlier steps have looked at the older events. O(new events).
    #[doc(hidden)]
    pub fn take_new_where(&mut self, mut wanted: impl FnMut(&Event) -> bool) -> Option<Event> {
        self.queue
            .take_new_where(&mut |event| !is_withdrawn(event) && wanted(event))
    }
}

/// For crates whose waits take one event after the other: only the wanted part leaves the event's
/// place. Moving an event first, and looking at it then, costs a stall for each move.
impl Events<'_> {
    /// Takes the value of the next event, if the event is a message of type `M` and lies in its
    /// node. Otherwise the event stays.
    #[doc(hidden)]
    #[inline]
    pub fn next_value<M: Any>(&mut self) -> Option<M> {
        let reader = self.reader.as_mut()?;
        reader.next_part(|event| event.take_value())
    }

    /// Takes the value of the next message of type `M`. Drops the events before it, and messages of
    /// other types.
    #[doc(hidden)]
    #[inline]
    pub fn next_message<M: Any>(&mut self) -> Option<M> {
        let in_place = self.next_value();
        if in_place.is_some() || self.is_empty() {
            return in_place;
        }
        self.find_map(|it| it.into_message().ok()?.take().ok())
    }

    /// Takes the next event, and puts its result into `place`, if it is a completion. Returns
    /// whether it was a completion.
    #[doc(hidden)]
    #[inline]
    pub fn next_result(&mut self, place: &mut Result<Payload, CommandError>) -> bool {
        let mut put = |event: &mut Event| match event {
            Event::Completion(it) => {
                *place = mem::replace(&mut it.result, Ok(Payload::UNIT));
                Some(())
            }
            _ => None,
        };
        match &mut self.reader {
            Some(reader) => reader.next_part(put).is_some(),
            None => self.next().and_then(|mut event| put(&mut event)).is_some(),
        }
    }
}

/// Returns whether the event is a withdrawn notice.
#[inline]
fn is_withdrawn(event: &Event) -> bool {
    matches!(event, Event::Exit(notice) if notice.is_withdrawn())
}

impl Events<'_> {
    fn next_of_queue(&mut self) -> Option<Event> {
        loop {
            let event = self.queue.pop_front()?;
            if !is_withdrawn(&event) {
                return Some(event);
            }
        }
    }

    /// Takes the next event, and passes withdrawn notices over.
    #[cold]
    #[inline(never)]
    fn next_shown(&mut self) -> Option<Event> {
        let reader = self.reader.as_mut()?;
        loop {
            let event = reader.next()?;
            if !is_withdrawn(&event) {
                return Some(event);
            }
        }
    }
}

impl Iterator for Events<'_> {
    type Item = Event;

    #[inline]
    fn next(&mut self) -> Option<Event> {
        let Some(reader) = &mut self.reader else {
            return self.next_of_queue();
        };
        if let Some(Event::Exit(_)) = reader.peek() {
            return self.next_shown();
        }
        reader.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.len();
        // The iterator passes withdrawn notices over.
        (0, Some(left))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{ExitCause, ExitNotice, Withdrawal};

    #[test]
    fn withdrawn_notices_are_passed_over() {
        let pid = "{main|7}".parse().unwrap();
        let withdrawal = Withdrawal::default();
        let notice = |tag| {
            let notice = ExitNotice::new(pid, tag, ExitCause::Done);
            Event::Exit(Box::new(notice.withdrawn_by(&withdrawal)))
        };
        let plain = Event::Exit(Box::new(ExitNotice::new(pid, 3, ExitCause::Done)));
        let mut queue = VecDeque::from([notice(1), notice(2), plain, notice(4)]);
        let mut events = Events::new(&mut queue);
        let tag = |event| match event {
            Some(Event::Exit(notice)) => notice.tag,
            _ => 0,
        };
        assert_eq!(tag(events.next()), 1);
        assert!(withdrawal.is_shared());
        withdrawal.withdraw();
        assert_eq!(tag(events.take_where(|_| true)), 3);
        assert_eq!(tag(events.next()), 0);
        assert!(events.is_empty() && !withdrawal.is_shared());
        let mut queue = VecDeque::from([notice(5)]);
        assert!(Events::new(&mut queue).next().is_none());
    }
}
