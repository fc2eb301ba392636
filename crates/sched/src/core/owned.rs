//! The part of a process that only its runner touches: the state machine itself, the events that
//! have left the mailbox, and the yields that have not completed.

use crate::base::contain::{discard, discard_each};
use crate::base::stats::Counters;
use crate::core::cell::Task;
use crate::core::lanes::{Aside, Share};
use crate::core::shown::Shown;
use crate::core::watchers::{Watch, Watchers};
use crate::probe::Arrival;
use crate::process::home::Home;
use crate::process::outstanding::Outstanding;
use crate::process::state::State;
use ganger_mpsc::{Batch, Single};
use ganger_proc_api::{Event, Lent, Pid, Process, UpgradeRequest};
use std::mem;

/// What a mailbox holds.
pub(crate) enum Item {
    /// What a step sees.
    Event(Event),
    /// A request to put another process in this one's place.
    Upgrade(Box<UpgradeRequest>),
    /// A request for the list of monitors.
    Watch(Box<Watch>),
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
    /// A reference to the process itself, for its next completer: a handler that answers at once
    /// gives it back, and no command counts one. None once the process has ended.
    pub(crate) cached_self_ref: Option<Task>,
    /// Step even if there is no event: the first step, the one after `Continue` or an upgrade.
    pub(crate) must_step: bool,
}

/// What the next step is about.
#[must_use]
pub(crate) enum Gathered {
    /// Step, with what is left and so many new events, the first in `pending`.
    Step(usize),
    /// Nothing happened: wait on.
    Nothing,
    /// Replace the process first.
    Upgrade(Box<UpgradeRequest>),
}

impl Item {
    /// What a probe sees of it: nothing, if no step sees it and it asks for nothing.
    #[inline]
    pub(crate) fn seen(&self) -> Option<Arrival<'_>> {
        match self {
            Self::Event(event) => Some(Arrival::Event(event)),
            Self::Upgrade(_) => Some(Arrival::Upgrade),
            Self::Watch(_) | Self::Nudge => None,
        }
    }
}

/// What a probe sees of these.
#[inline]
pub(crate) fn seen(items: &Batch<Item>) -> impl Iterator<Item = Arrival<'_>> + Clone {
    items.iter().filter_map(Item::seen)
}

impl Core {
    /// The core of a process that has not had a step. Inlined into the place where it stays.
    #[inline(always)]
    pub(crate) fn new(process: Home) -> Self {
        Self {
            process: Some(process),
            must_step: true,
            ..Self::default()
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

    /// Carries out a request for the list of monitors. Returns how much of a batch that costs.
    fn watch(&mut self, watch: Watch, counters: &Counters) -> usize {
        let aside = self.aside.get_or_insert_default();
        let watchers = aside.watchers.get_or_insert_default();
        let cost = watchers.apply(watch, counters);
        if watchers.is_empty() {
            aside.watchers = None;
        }
        if aside.is_empty() {
            self.aside = None;
        }
        cost
    }

    /// Sees to it that the next step's new system events are among the left events, in front of
    /// the others. Then `pending` begins with the step's other new events: at most `limit` in
    /// all. There are none of these when a system event has to wait, because the batch is full or
    /// an upgrade is next.
    #[inline(always)]
    pub(crate) fn gather(
        &mut self,
        state: &State<Item>,
        mut limit: usize,
        counters: &Counters,
    ) -> Gathered {
        if self.aside.is_some() {
            match self.gather_system(state, limit) {
                Share::Upgrade(request) => return Gathered::Upgrade(request),
                Share::Room(room) => limit = room,
            }
        }
        let mut events = 0;
        for item in self.pending.iter().take(limit) {
            let is_event = match item {
                Item::Event(Event::Completion(completion)) => {
                    self.yields.finish(completion.token())
                }
                Item::Event(_) => true,
                Item::Upgrade(_) | Item::Watch(_) | Item::Nudge => false,
            };
            if !is_event {
                return self.gather_more(events, limit, counters);
            }
            events += 1;
        }
        self.step(events)
    }

    /// The system lane's share of a batch.
    #[cold]
    #[inline(never)]
    fn gather_system(&mut self, state: &State<Item>, limit: usize) -> Share {
        let Some(aside) = self.aside.as_mut().filter(|aside| !aside.is_quiet()) else {
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
        // What is for no step takes its time as well.
        let mut spent = 0;
        while gathered.len() + spent < limit
            && let Some(item) = self.pending.pop_front()
        {
            match item {
                Item::Nudge => {}
                Item::Watch(watch) => spent += self.watch(*watch, counters),
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
        self.step(events)
    }

    #[inline]
    fn step(&mut self, events: usize) -> Gathered {
        if self.must_step {
            self.must_step = false;
            return Gathered::Step(events);
        }
        if events > 0 {
            Gathered::Step(events)
        } else {
            Gathered::Nothing
        }
    }

    /// A handler has answered a yield before it returned: the answer is the last arrived item.
    #[inline]
    pub(crate) fn push_answer(&mut self, token: u64, answer: Single<Item>) {
        self.yields.insert(token);
        self.pending.append(answer.into_batch());
    }

    /// Lends the new events of the next step, as many as have been gathered.
    #[inline]
    pub(crate) fn lend(&self, events: usize) -> Lent {
        // SAFETY: `pending` begins with so many events, in their order, in nodes, which are links.
        // (Under loom they are not, and the step does not go by them.) They are this step's.
        // `Shown` lends the others when it changes the list.
        unsafe { Lent::new(self.pending.links().cast(), events) }
    }

    /// The process, with the events of its next step.
    #[inline]
    pub(crate) fn shown<'a>(
        &'a mut self,
        lent: &'a Lent,
    ) -> Option<(&'a mut dyn Process, Shown<'a>)> {
        let process = self.process.as_deref_mut()?;
        let shown = Shown::new(&mut self.aside, &mut self.pending, lent);
        Some((process, shown))
    }

    /// Keeps what a step left of its new events, for the steps after it.
    #[inline]
    pub(crate) fn keep(&mut self, left: usize) {
        if left > 0 {
            self.keep_some(left);
        }
    }

    #[cold]
    #[inline(never)]
    fn keep_some(&mut self, left: usize) {
        let left = self.pending.split_to(left);
        self.aside.get_or_insert_default().left.append(left);
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

    /// Takes all events out into `events`, and gives back the monitors to tell: the process has
    /// ended.
    #[inline]
    pub(crate) fn take_events(&mut self, events: &mut Batch<Item>) -> Option<Box<Watchers>> {
        *events = mem::take(&mut self.pending);
        let mut aside = self.aside.take()?;
        aside.take_events(events);
        aside.watchers.take()
    }
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

#[cfg(all(test, not(ganger_loom)))]
mod tests;
