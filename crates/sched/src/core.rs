//! The part of a process that only its runner touches: the state machine itself, the events that
//! have left the mailbox, and the yields that have not completed.

use crate::contain::{discard, discard_each};
use crate::home::Home;
use crate::outstanding::Outstanding;
use crate::state::State;
use crate::stats::Counters;
use ganger_mpsc::Batch;
use ganger_proc_api::{Event, EventQueue, Process, UpgradeRequest};
use std::{mem, ptr};

/// What a mailbox holds.
pub(crate) enum Item {
    /// What a step sees.
    Event(Event),
    /// A request to put another process in this one's place.
    Upgrade(Box<UpgradeRequest>),
    /// Nothing: it just wakes the process.
    Nudge,
}

// An event is moved out of the mailbox as it is: nothing is written beside it.
const _: () = assert!(size_of::<Item>() == size_of::<Event>());

pub(crate) struct Core {
    /// None once the process has ended.
    pub(crate) process: Option<Home>,
    /// Taken out of the mailbox, not yet shown to a step.
    pub(crate) pending: Batch<Item>,
    /// Events that were shown to a step, and not taken by it; none, or at least one. A thin pointer,
    /// because almost no process needs it.
    left: Option<Box<Batch<Item>>>,
    pub(crate) yields: Outstanding,
    /// Step even if there is no event: the first step, the one after `Continue` or an upgrade.
    pub(crate) must_step: bool,
}

/// What the next step is about.
#[must_use]
pub(crate) enum Gathered {
    /// Step, with what is left and so many new events, which are the first in `pending`.
    Step(usize),
    /// Nothing happened: wait on.
    Nothing,
    /// Replace the process first.
    Upgrade(Box<UpgradeRequest>),
}

impl Core {
    pub(crate) fn new(process: Home) -> Self {
        Self {
            process: Some(process),
            pending: Batch::new(),
            left: None,
            yields: Outstanding::default(),
            must_step: true,
        }
    }

    /// Moves what has arrived into `pending`. One RMW when there is something, none otherwise.
    #[inline]
    pub(crate) fn receive(&mut self, state: &State<Item>) {
        if state.has_events() {
            self.pending.append(state.drain());
        }
    }

    /// Sees to it that `pending` begins with the new events of the next step: at most `limit`, up to the
    /// next upgrade.
    #[inline]
    pub(crate) fn gather(&mut self, limit: usize, counters: &Counters) -> Gathered {
        let mut events = 0;
        for item in self.pending.iter().take(limit) {
            let is_event = match item {
                Item::Event(Event::Completion(completion)) => {
                    self.yields.finish(completion.token())
                }
                Item::Event(_) => true,
                Item::Upgrade(_) | Item::Nudge => false,
            };
            if !is_event {
                return self.gather_more(events, limit, counters);
            }
            events += 1;
        }
        self.step(events)
    }

    /// Goes on with [`gather`](Self::gather) behind the first `events` of `pending`, where there is
    /// something that is no event for the step.
    #[cold]
    #[inline(never)]
    fn gather_more(&mut self, events: usize, limit: usize, counters: &Counters) -> Gathered {
        let mut gathered = self.pending.split_to(events);
        while gathered.len() < limit
            && let Some(item) = self.pending.pop_front()
        {
            match item {
                Item::Nudge => {}
                Item::Event(Event::Completion(completion))
                    if !self.yields.finish(completion.token()) =>
                {
                    counters.stale_completions.bump();
                    discard(counters, completion);
                }
                Item::Event(_) => gathered.push_back(item),
                Item::Upgrade(request) if gathered.is_empty() => return Gathered::Upgrade(request),
                Item::Upgrade(_) => {
                    self.pending.push_front(item);
                    break;
                }
            }
        }
        let events = gathered.len();
        gathered.append(mem::take(&mut self.pending));
        self.pending = gathered;
        self.step(events)
    }

    #[inline]
    fn step(&mut self, events: usize) -> Gathered {
        if mem::take(&mut self.must_step) || events > 0 {
            Gathered::Step(events)
        } else {
            Gathered::Nothing
        }
    }

    /// The process, with the events of its next step, as many new ones as have been gathered.
    #[inline]
    pub(crate) fn shown(&mut self, events: usize) -> Option<(&mut dyn Process, Shown<'_>)> {
        let process = self.process.as_deref_mut()?;
        let shown = Shown {
            left: &mut self.left,
            pending: &mut self.pending,
            events,
            messages_taken: 0,
        };
        Some((process, shown))
    }

    /// Keeps what a step left of its new events, for the steps after it.
    #[inline]
    pub(crate) fn keep(&mut self, events: usize) {
        if events > 0 {
            self.keep_some(events);
        }
    }

    #[cold]
    #[inline(never)]
    fn keep_some(&mut self, events: usize) {
        let kept = self.pending.split_to(events);
        match &mut self.left {
            Some(left) => left.append(kept),
            None => self.left = Some(Box::new(kept)),
        }
    }

    /// The process has been replaced: what its predecessor had asked for is none of its business.
    pub(crate) fn forget_yields(&mut self, counters: &Counters) {
        self.yields.forget_all();
        let is_completion = |item: &Item| matches!(item, Item::Event(Event::Completion(_)));
        let left = self.left.take().map_or_else(Batch::new, |left| *left);
        let (stale, kept): (Batch<_>, Batch<_>) = left.into_iter().partition(is_completion);
        counters.stale_completions.add(stale.len() as u64);
        discard_each(counters, stale);
        self.left = (!kept.is_empty()).then(|| Box::new(kept));
    }

    /// Takes all events out, because the process has ended.
    pub(crate) fn take_events(&mut self) -> Batch<Item> {
        let pending = mem::take(&mut self.pending);
        match self.left.take() {
            None => pending,
            Some(mut left) => {
                left.append(pending);
                *left
            }
        }
    }
}

/// The events of one step, where they lie.
pub(crate) struct Shown<'a> {
    left: &'a mut Option<Box<Batch<Item>>>,
    pending: &'a mut Batch<Item>,
    /// How many of `pending` are events of this step, and not taken yet.
    pub(crate) events: usize,
    pub(crate) messages_taken: usize,
}

impl Shown<'_> {
    fn take(&mut self, item: Option<Item>) -> Option<Event> {
        let Some(Item::Event(event)) = item else {
            return None;
        };
        self.messages_taken += usize::from(matches!(event, Event::Message(_)));
        Some(event)
    }

    #[cold]
    #[inline(never)]
    fn take_left(&mut self, wanted: &mut dyn FnMut(&Event) -> bool) -> Option<Event> {
        let left = self.left.as_mut()?;
        let index = left.iter().position(is_event(wanted))?;
        let item = left.remove(index);
        if left.is_empty() {
            *self.left = None;
        }
        self.take(item)
    }

    fn new_events(&self) -> impl Iterator<Item = &Item> {
        self.pending.iter().take(self.events)
    }
}

impl EventQueue for Shown<'_> {
    fn len(&self) -> usize {
        self.left.as_ref().map_or(0, |left| left.len()) + self.events
    }

    fn front(&self) -> Option<&Event> {
        let left = self.left.as_ref().and_then(|left| left.front());
        match left.or_else(|| self.new_events().next()) {
            Some(Item::Event(event)) => Some(event),
            _ => None,
        }
    }

    fn pop_front(&mut self) -> Option<Event> {
        if self.left.is_some() {
            return self.take_left(&mut |_| true);
        }
        let left = self.events.checked_sub(1)?;
        let Some(Item::Event(event)) = self.pending.front() else {
            return None;
        };
        self.messages_taken += usize::from(matches!(event, Event::Message(_)));
        // SAFETY: the item is not used again, because its node is freed; nothing in between panics.
        let event = unsafe { ptr::read(event) };
        // SAFETY: the event was all that was in the oldest item.
        unsafe { self.pending.forget_front() };
        self.events = left;
        Some(event)
    }

    fn take_where(&mut self, wanted: &mut dyn FnMut(&Event) -> bool) -> Option<Event> {
        if let Some(event) = self.take_left(wanted) {
            return Some(event);
        }
        let index = self.new_events().position(is_event(wanted))?;
        self.events -= 1;
        let item = self.pending.remove(index);
        self.take(item)
    }

    fn visit(&self, visit: &mut dyn FnMut(&Event)) {
        let left = self.left.iter().flat_map(|left| left.iter());
        for item in left.chain(self.new_events()) {
            if let Item::Event(event) = item {
                visit(event);
            }
        }
    }
}

fn is_event(wanted: &mut dyn FnMut(&Event) -> bool) -> impl FnMut(&Item) -> bool {
    |item| matches!(item, Item::Event(event) if wanted(event))
}

/// How many of these are messages, and how many completions.
pub(crate) fn count(items: &Batch<Item>) -> (u64, u64) {
    let items = items.iter().map(|item| match item {
        Item::Event(Event::Message(_)) => (1, 0),
        Item::Event(Event::Completion(_)) => (0, 1),
        _ => (0, 0),
    });
    items.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}
