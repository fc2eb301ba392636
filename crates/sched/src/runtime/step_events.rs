//! The events of one step, in their places.
//!
//! A step sees the events of the side queues, and then the first of the pending ones. The side
//! queues have the events left by earlier steps, and system events. Without an event there for this
//! step, it takes the pending ones through an [`EventCursor`], out of the nodes of the list and
//! without a call. The nodes are freed when the step is over, or before any earlier change of the
//! list.

use crate::limits::room::{CONTROL, MESSAGE};
use crate::runtime::item::Item;
use crate::runtime::side_queues::SideQueues;
use ganger_mpsc::Batch;
use ganger_proc_api::internal::EventCursor;
use ganger_proc_api::{Event, EventQueue, Events};

/// Whether events are linked as [`EventCursor`] expects: the cells of loom are larger.
const ARE_LINKED: bool = cfg!(not(ganger_loom));

// An event fills its item, so it lies behind the pointer in a node as it does in a link.
const _: () = {
    assert!(size_of::<Event>() == size_of::<Item>());
    assert!(align_of::<Event>() == align_of::<Item>());
};

/// The events of one step.
pub(crate) struct StepEvents<'a> {
    aside: &'a mut Option<Box<SideQueues>>,
    pending: &'a mut Batch<Item>,
    /// The cursor over the first pending events. An event taken by the step is no item of the list.
    cursor: &'a EventCursor,
    /// How many there were of these when the list was last put in order.
    before: usize,
    /// The room freed by taken events, as far as it has been counted: see `Room::give`.
    pub(crate) places: u64,
}

impl<'a> StepEvents<'a> {
    /// Makes the events of a step from the side queues, and the pending ones under the cursor.
    pub(crate) fn new(
        aside: &'a mut Option<Box<SideQueues>>,
        pending: &'a mut Batch<Item>,
        cursor: &'a EventCursor,
    ) -> Self {
        Self {
            aside,
            pending,
            cursor,
            before: cursor.left(),
            places: 0,
        }
    }

    /// Returns the events for a step, which takes them.
    pub(crate) fn events(&mut self) -> Events<'_> {
        // A process that is linked, supervised or in a group has its exit actions here, and no
        // event.
        let has_left = self.aside.as_ref().is_some_and(|it| it.untaken() > 0);
        let cursor = (ARE_LINKED && !has_left).then_some(self.cursor);
        Events::of(self, cursor)
    }

    /// Sets the cursor to the list, which is in order, and begins with `count` events.
    fn set_cursor(&mut self, count: usize) {
        self.before = count;
        // SAFETY: the list has `count` events, as in `Core::cursor`.
        unsafe { self.cursor.set(self.pending.links().cast(), count) };
    }

    /// Returns the number of events taken since the list was last in order.
    fn taken(&self) -> usize {
        self.before - self.cursor.left()
    }

    /// Counts the room of the events taken by the step. Called before the list is put in order, in
    /// a process with a limit.
    #[cold]
    pub(crate) fn count(&mut self) {
        // The events have been moved out; their old bytes can be read until their memory is freed.
        let taken = self.pending.iter().take(self.taken());
        // Control messages are never here.
        let messages = taken.filter(|item| matches!(item, Item::Event(Event::Message(_))));
        self.places += messages.count() as u64 * MESSAGE;
    }

    /// Puts the list in order: frees the memory of taken events. Returns how many pending events
    /// are left. Other code uses the pending events after this call only.
    pub(crate) fn settle(&mut self) -> usize {
        let left = self.cursor.left();
        if left < self.before {
            // SAFETY: the step has got the events by value, or dropped them.
            unsafe { self.pending.forget(self.taken()) };
            self.before = left;
        }
        left
    }

    /// Settles as [`settle`](Self::settle) does, and counts the taken events: for rare paths,
    /// without a look at the limit.
    fn count_and_settle(&mut self) -> usize {
        self.count();
        self.settle()
    }

    fn take(&mut self, item: Option<Item>) -> Option<Event> {
        let Some(Item::Event(event)) = item else {
            return None;
        };
        self.places += match event {
            Event::Message(_) => MESSAGE,
            Event::Control(_) => CONTROL,
            _ => 0,
        };
        Some(event)
    }

    fn take_left(&mut self, wanted: &mut dyn FnMut(&Event) -> bool) -> Option<Event> {
        let aside = self.aside.as_mut()?;
        let mut take = |from: &mut Batch<Item>| {
            let index = from.iter().position(is_event(wanted))?;
            from.remove(index)
        };
        let item = take(&mut aside.shown).or_else(|| take(&mut aside.left));
        if aside.is_empty() {
            *self.aside = None;
        }
        self.take(item)
    }

    /// Iterates over all events not yet taken, in order.
    fn all(&self) -> impl Iterator<Item = &Event> {
        let left = self.aside.iter();
        let left = left.flat_map(|aside| aside.shown.iter().chain(&aside.left));
        let new = (self.pending.iter())
            .skip(self.taken())
            .take(self.cursor.left());
        left.chain(new).filter_map(as_event)
    }
}

impl EventQueue for StepEvents<'_> {
    fn len(&self) -> usize {
        let left = self.aside.as_ref().map_or(0, |aside| aside.untaken());
        left + self.cursor.left()
    }

    fn front(&self) -> Option<&Event> {
        self.all().next()
    }

    fn pop_front(&mut self) -> Option<Event> {
        if let Some(aside) = self.aside.as_mut() {
            // The side queues hold only events for a step.
            let item = aside.shown.pop_front().or_else(|| aside.left.pop_front());
            if aside.is_empty() {
                *self.aside = None;
            }
            if item.is_some() {
                return self.take(item);
            }
        }
        let left = self.cursor.left().checked_sub(1)?;
        self.count_and_settle();
        let item = self.pending.pop_front();
        self.set_cursor(left);
        self.take(item)
    }

    fn take_where(&mut self, wanted: &mut dyn FnMut(&Event) -> bool) -> Option<Event> {
        if let Some(event) = self.take_left(wanted) {
            return Some(event);
        }
        self.take_new_where(wanted)
    }

    fn take_new_where(&mut self, wanted: &mut dyn FnMut(&Event) -> bool) -> Option<Event> {
        let events = self.count_and_settle();
        let mut pending = self.pending.iter().take(events);
        let index = pending.position(is_event(wanted))?;
        let item = self.pending.remove(index);
        self.set_cursor(events - 1);
        self.take(item)
    }

    fn visit(&self, visit: &mut dyn FnMut(&Event)) {
        self.all().for_each(visit);
    }
}

fn as_event(item: &Item) -> Option<&Event> {
    match item {
        Item::Event(event) => Some(event),
        _ => None,
    }
}

fn is_event(wanted: &mut dyn FnMut(&Event) -> bool) -> impl FnMut(&Item) -> bool {
    |item| matches!(item, Item::Event(event) if wanted(event))
}
