//! The part of a process that only its runner touches: the state machine itself, the events that
//! have left the mailbox, and the yields that have not completed.

use crate::Task;
use crate::answer::AnswerPlace;
use crate::contain::{discard, discard_each};
use crate::dispatch::Inline;
use crate::home::Home;
use crate::lanes::{Aside, Share};
use crate::outstanding::Outstanding;
use crate::room::{CONTROL, MESSAGE};
use crate::state::State;
use crate::stats::Counters;
use ganger_mpsc::Batch;
use ganger_proc_api::{Event, EventQueue, Pid, Placed, Process, UpgradeRequest};
use std::mem;

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

#[derive(Default)]
pub(crate) struct Core {
    /// None once the process has ended.
    pub(crate) process: Option<Home>,
    /// Taken out of the mailbox, not yet shown to a step; no system events.
    pub(crate) pending: Batch<Item>,
    /// None when there is nothing in it. A thin pointer, because almost no process needs it.
    aside: Option<Box<Aside>>,
    pub(crate) yields: Outstanding,
    /// A reference to the process itself, which its next completer may have: to count another one costs more
    /// than a short handler. None once the process has ended.
    pub(crate) itself: Option<Task>,
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
    /// Makes one in its place, each part where it stays: what is put together elsewhere first is moved in
    /// larger pieces than it was written in, for which a processor has to wait.
    ///
    /// # Safety
    /// The place is one for a core, and nobody else uses it. What it holds is not dropped.
    #[inline]
    pub(crate) unsafe fn begin(place: *mut Self, process: Home) {
        // Does not compile when a part is missing.
        let _all = |Self {
                        process: _,
                        pending: _,
                        aside: _,
                        yields: _,
                        itself: _,
                        must_step: _,
                    }: &Self| ();
        // SAFETY: parts of the place, which is the caller's.
        unsafe {
            (&raw mut (*place).process).write(Some(process));
            (&raw mut (*place).pending).write(Batch::new());
            (&raw mut (*place).aside).write(None);
            (&raw mut (*place).yields).write(Outstanding::default());
            (&raw mut (*place).itself).write(None);
            (&raw mut (*place).must_step).write(true);
        }
    }

    /// Moves what has arrived into `pending`. One RMW when there is something, none otherwise.
    #[inline]
    pub(crate) fn receive(&mut self, state: &State<Item>) {
        if state.has_events() {
            let arrived = state.drain();
            if state.may_hold_system() {
                self.part(arrived);
            } else {
                self.pending.append(arrived);
            }
        }
    }

    /// As `receive`, where system events may be among what has arrived.
    #[cold]
    #[inline(never)]
    fn part(&mut self, arrived: Batch<Item>) {
        let aside = self.aside.get_or_insert_default();
        self.pending.append(aside.part(arrived));
        if aside.is_empty() {
            self.aside = None;
        }
    }

    /// Whether system events wait that have left the mailbox.
    #[inline]
    pub(crate) fn has_system(&self) -> bool {
        (self.aside.as_ref()).is_some_and(|aside| !aside.system.is_empty())
    }

    /// Sees to it that the next step's new system events are among what is left, in front of the others,
    /// and that `pending` begins with its other new events: at most `limit` in all. There are none of the
    /// latter when a system event has to wait, because the batch is full, or an upgrade is next. An answer
    /// that is in its place stays there if it is the first of the next step's events.
    #[inline(always)]
    pub(crate) fn gather(
        &mut self,
        state: &State<Item>,
        mut limit: usize,
        inline: &mut Inline,
        counters: &Counters,
    ) -> Gathered {
        if self.aside.is_some() {
            inline.put_back(self);
            // It is one of this step's events, and not of what comes before the next one.
            inline.answers = 0;
            match self.gather_system(state, limit) {
                Share::Upgrade(request) => return Gathered::Upgrade(request),
                Share::Room(room) => limit = room,
            }
        }
        let has_answer = inline.place.is_full();
        if self.pending.is_empty() {
            return self.step(has_answer, 0);
        }
        limit -= usize::from(has_answer);
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
                self.must_step |= has_answer;
                return self.gather_more(events, limit, counters);
            }
            events += 1;
        }
        self.step(has_answer, events)
    }

    /// The system lane's share of a batch.
    #[cold]
    #[inline(never)]
    fn gather_system(&mut self, state: &State<Item>, limit: usize) -> Share {
        let Some(aside) = &mut self.aside else {
            return Share::Room(limit);
        };
        let waiting = aside.system.len();
        let share = aside.share(limit, !self.pending.is_empty());
        let taken = waiting - aside.system.len();
        if aside.is_empty() {
            self.aside = None;
        }
        if taken > 0 {
            state.take_system(taken);
            self.must_step |= matches!(share, Share::Room(_));
        }
        share
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
                    discard(None, counters, completion);
                }
                Item::Event(_) => gathered.push_back(item),
                Item::Upgrade(_) => unreachable!("an upgrade is in the system lane"),
            }
        }
        let events = gathered.len();
        gathered.append(mem::take(&mut self.pending));
        self.pending = gathered;
        self.step(false, events)
    }

    #[inline]
    fn step(&mut self, has_answer: bool, events: usize) -> Gathered {
        if self.must_step {
            self.must_step = false;
            return Gathered::Step(events);
        }
        if has_answer || events > 0 {
            Gathered::Step(events)
        } else {
            Gathered::Nothing
        }
    }

    /// The process, with the events of its next step: the answer that is in its place, and as many new ones
    /// as have been gathered.
    #[inline]
    pub(crate) fn shown<'a>(
        &'a mut self,
        answer: &'a mut AnswerPlace,
        events: usize,
    ) -> Option<(&'a mut dyn Process, Shown<'a>)> {
        let process = self.process.as_deref_mut()?;
        let shown = Shown {
            aside: &mut self.aside,
            answer,
            pending: &mut self.pending,
            events,
            places: 0,
            is_spent: false,
        };
        Some((process, shown))
    }

    /// Keeps what a step left of its new events, for the steps after it.
    #[inline]
    pub(crate) fn keep(&mut self, answer: &mut AnswerPlace, events: usize) {
        if events + usize::from(answer.is_full()) > 0 {
            self.keep_some(answer, events);
        }
    }

    #[cold]
    #[inline(never)]
    fn keep_some(&mut self, answer: &mut AnswerPlace, events: usize) {
        let left = &mut self.aside.get_or_insert_default().left;
        left.append(answer.take_item());
        left.append(self.pending.split_to(events));
    }

    /// The process has been replaced: what its predecessor had asked for is none of its business.
    pub(crate) fn forget_yields(&mut self, pid: Pid, counters: &Counters) {
        self.yields.forget_all();
        let is_completion = |item: &Item| matches!(item, Item::Event(Event::Completion(_)));
        let Some(aside) = &mut self.aside else {
            return;
        };
        let left = mem::take(&mut aside.left);
        let (stale, kept): (Batch<_>, Batch<_>) = left.into_iter().partition(is_completion);
        aside.left = kept;
        if aside.is_empty() {
            self.aside = None;
        }
        counters.stale_completions.add(stale.len() as u64);
        discard_each(pid, counters, stale);
    }

    /// Takes all events out, because the process has ended.
    pub(crate) fn take_events(&mut self) -> Batch<Item> {
        let pending = mem::take(&mut self.pending);
        match self.aside.take() {
            None => pending,
            Some(aside) => {
                let Aside {
                    system, mut left, ..
                } = *aside;
                left.append(system);
                left.append(pending);
                left
            }
        }
    }
}

/// The events of one step, where they lie.
pub(crate) struct Shown<'a> {
    aside: &'a mut Option<Box<Aside>>,
    /// In front of what is pending. When there is one, nothing is left from earlier steps.
    answer: &'a mut AnswerPlace,
    pending: &'a mut Batch<Item>,
    /// How many of `pending` are events of this step, and not taken yet.
    pub(crate) events: usize,
    /// The places of the messages and control messages that the step has taken: see `Room::give`.
    pub(crate) places: u64,
    /// The first item of `pending` is none any more: the step has taken it where it lies.
    is_spent: bool,
}

impl Shown<'_> {
    /// Frees the memory of what the step has taken last. Nobody uses `pending` before.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if self.is_spent {
            self.is_spent = false;
            // SAFETY: the step has got the event by value, or dropped it in its place.
            unsafe { self.pending.forget_front() };
        }
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

    #[cold]
    #[inline(never)]
    fn take_left(&mut self, wanted: &mut dyn FnMut(&Event) -> bool) -> Option<Event> {
        let aside = self.aside.as_mut()?;
        let index = aside.left.iter().position(is_event(wanted))?;
        let item = aside.left.remove(index);
        if aside.is_empty() {
            *self.aside = None;
        }
        self.take(item)
    }

    fn left(&self) -> impl Iterator<Item = &Item> {
        self.aside.iter().flat_map(|aside| aside.left.iter())
    }

    fn new_events(&self) -> impl Iterator<Item = &Item> {
        let spent = usize::from(self.is_spent);
        self.pending.iter().skip(spent).take(self.events)
    }
}

impl EventQueue for Shown<'_> {
    #[inline]
    fn len(&self) -> usize {
        let left = self.aside.as_ref().map_or(0, |aside| aside.left.len());
        left + usize::from(self.answer.is_full()) + self.events
    }

    fn front(&self) -> Option<&Event> {
        let left = self.aside.as_ref().and_then(|aside| aside.left.front());
        if left.is_none()
            && let Some(answer) = self.answer.get()
        {
            return Some(answer);
        }
        match left.or_else(|| self.new_events().next()) {
            Some(Item::Event(event)) => Some(event),
            _ => None,
        }
    }

    fn pop_front(&mut self) -> Option<Event> {
        if self.aside.is_some()
            && let Some(event) = self.take_left(&mut |_| true)
        {
            return Some(event);
        }
        self.pop_new().map(Placed::take)
    }

    #[inline]
    fn pop_placed(&mut self) -> Option<Placed<'_, Event>> {
        if self.aside.is_some() {
            return None;
        }
        self.pop_new()
    }

    fn take_where(&mut self, wanted: &mut dyn FnMut(&Event) -> bool) -> Option<Event> {
        if let Some(event) = self.take_left(wanted) {
            return Some(event);
        }
        if self.answer.get().is_some_and(&mut *wanted) {
            return self.answer.take().map(Placed::take);
        }
        self.settle();
        let index = self.new_events().position(is_event(wanted))?;
        self.events -= 1;
        let item = self.pending.remove(index);
        self.take(item)
    }

    fn visit(&self, visit: &mut dyn FnMut(&Event)) {
        for item in self.left() {
            if let Item::Event(event) = item {
                visit(event);
            }
        }
        self.answer.get().into_iter().for_each(&mut *visit);
        for item in self.new_events() {
            if let Item::Event(event) = item {
                visit(event);
            }
        }
    }
}

impl Shown<'_> {
    /// Takes the first event that is new, where it lies.
    #[inline]
    fn pop_new(&mut self) -> Option<Placed<'_, Event>> {
        if self.answer.is_full() {
            return self.answer.take();
        }
        self.settle();
        let left = self.events.checked_sub(1)?;
        let Some(Item::Event(event)) = self.pending.front_mut() else {
            return None;
        };
        // Control messages are never here.
        self.places += u64::from(matches!(event, Event::Message(_))) * MESSAGE;
        self.events = left;
        self.is_spent = true;
        // SAFETY: an event that is given away: its item is not used again, but its memory freed, and not
        // before that which is returned has gone.
        Some(unsafe { Placed::new(event) })
    }
}

fn is_event(wanted: &mut dyn FnMut(&Event) -> bool) -> impl FnMut(&Item) -> bool {
    |item| matches!(item, Item::Event(event) if wanted(event))
}

/// How many of these are messages, and how many completions.
pub(crate) fn count(items: &Batch<Item>) -> (u64, u64) {
    let items = items.iter().map(|item| match item {
        Item::Event(Event::Message(_) | Event::Control(_)) => (1, 0),
        Item::Event(Event::Completion(_)) => (0, 1),
        _ => (0, 0),
    });
    items.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}
