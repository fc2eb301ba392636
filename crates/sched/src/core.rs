//! The part of a process that only its runner touches: the state machine itself, the events that
//! have left the mailbox, and the yields that have not completed.

use crate::contain::{discard, discard_each};
use crate::lanes::Aside;
use crate::outstanding::Outstanding;
use crate::state::State;
use crate::stats::Counters;
use ganger_mpsc::Batch;
use ganger_proc_api::{Completion, Event, Process, UpgradeRequest};
use std::collections::VecDeque;

/// What a mailbox holds.
pub(crate) enum Item {
    /// A message or a request to finish.
    Event(Event),
    /// The answer to the yield with that number.
    Completion { token: u64, completion: Completion },
    /// A request to put another process in this one's place.
    Upgrade(Box<UpgradeRequest>),
    /// Nothing: it just wakes the process.
    Nudge,
}

pub(crate) struct Core {
    /// None once the process has ended.
    pub(crate) process: Option<Box<dyn Process>>,
    /// Taken out of the mailbox, not yet shown to a step; no system events.
    pub(crate) pending: Batch<Item>,
    aside: Option<Box<Aside>>,
    pub(crate) yields: Outstanding,
    /// Step even if there is no event: the first step, the one after `Continue` or an upgrade.
    pub(crate) must_step: bool,
}

/// What the next step is about.
#[must_use]
pub(crate) enum Gathered {
    /// Step, with these events.
    Step,
    /// Nothing happened: wait on.
    Nothing,
    /// Replace the process first.
    Upgrade(Box<UpgradeRequest>),
}

impl Core {
    pub(crate) fn new(process: Box<dyn Process>) -> Self {
        Self {
            process: Some(process),
            pending: Batch::new(),
            aside: None,
            yields: Outstanding::default(),
            must_step: true,
        }
    }

    /// Moves what has arrived into `pending`. One RMW when there is something, none otherwise.
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
    fn part(&mut self, arrived: Batch<Item>) {
        let others = self.aside.get_or_insert_default().part(arrived);
        self.pending.append(others);
    }

    /// Whether there is something to show to a step.
    pub(crate) fn has_new(&self) -> bool {
        !self.pending.is_empty()
            || (self.aside.as_ref()).is_some_and(|aside| !aside.system.is_empty())
    }

    /// Fills the empty `batch`: first what the last step left, then up to `limit` new events: system
    /// events up to the next upgrade, which go before the others that were left; and, unless an upgrade
    /// is next, those `completions` and what is pending.
    pub(crate) fn gather(
        &mut self,
        state: &State<Item>,
        batch: &mut VecDeque<Event>,
        completions: &mut VecDeque<(u64, Completion)>,
        limit: usize,
        counters: &Counters,
    ) -> Gathered {
        let (mut before, mut limit) = (0, limit);
        if let Some(mut aside) = self.aside.take() {
            if !aside.left.is_empty() {
                *batch = std::mem::take(&mut aside.left);
            }
            before = batch.len();
            if !aside.system.is_empty() {
                let others_wait = !completions.is_empty() || !self.pending.is_empty();
                let shown = aside.show(batch, limit, others_wait);
                if aside.is_needed() {
                    self.aside = Some(aside);
                }
                state.take_system(shown.taken);
                if let Some(request) = shown.upgrade {
                    self.keep(batch);
                    return Gathered::Upgrade(request);
                }
                if shown.is_cut_short {
                    limit = batch.len() - before;
                }
            }
        }
        while batch.len() - before < limit
            && let Some((token, completion)) = completions.pop_front()
        {
            self.deliver(token, completion, batch, counters);
        }
        while batch.len() - before < limit {
            match self.pending.pop_front() {
                None => break,
                Some(Item::Nudge) => {}
                Some(Item::Event(event)) => batch.push_back(event),
                Some(Item::Completion { token, completion }) => {
                    self.deliver(token, completion, batch, counters);
                }
                Some(Item::Upgrade(_)) => unreachable!("an upgrade is in the system lane"),
            }
        }
        if std::mem::take(&mut self.must_step) || batch.len() > before {
            Gathered::Step
        } else {
            self.keep(batch);
            Gathered::Nothing
        }
    }

    /// Adds a completion to `batch`, unless it is stale.
    fn deliver(
        &mut self,
        token: u64,
        completion: Completion,
        batch: &mut VecDeque<Event>,
        counters: &Counters,
    ) {
        if self.yields.finish(token) {
            batch.push_back(Event::Completion(completion));
        } else {
            counters.stale_completions.bump();
            discard(counters, completion);
        }
    }

    /// Takes what a step left in `batch`, which is empty afterwards.
    pub(crate) fn keep(&mut self, batch: &mut VecDeque<Event>) {
        if !batch.is_empty() {
            self.aside.get_or_insert_default().left = std::mem::take(batch);
        }
    }

    /// The process has been replaced: what its predecessor had asked for is none of its business.
    pub(crate) fn forget_yields(&mut self, counters: &Counters) {
        self.yields.forget_all();
        let is_completion = |event: &Event| matches!(event, Event::Completion(_));
        let Some(aside) = &mut self.aside else {
            return;
        };
        let left = std::mem::take(&mut aside.left);
        let (stale, kept): (VecDeque<_>, VecDeque<_>) = left.into_iter().partition(is_completion);
        aside.left = kept;
        counters.stale_completions.add(stale.len() as u64);
        discard_each(counters, stale);
    }

    /// Takes all events out, because the process has ended.
    pub(crate) fn take_events(&mut self) -> (VecDeque<Event>, Batch<Item>) {
        let Aside { system, left, .. } = self.aside.take().map(|aside| *aside).unwrap_or_default();
        let mut items: Batch<Item> = system.into_iter().collect();
        items.append(std::mem::take(&mut self.pending));
        (left, items)
    }
}

/// How many of these are messages, and how many completions.
pub(crate) fn count(left: &VecDeque<Event>, items: &Batch<Item>) -> (u64, u64) {
    let events = left.iter().map(|event| match event {
        Event::Message(_) | Event::Control(_) => (1, 0),
        Event::Completion(_) => (0, 1),
        _ => (0, 0),
    });
    let items = items.iter().map(|item| match item {
        Item::Event(Event::Message(_) | Event::Control(_)) => (1, 0),
        Item::Completion { .. } => (0, 1),
        _ => (0, 0),
    });
    events
        .chain(items)
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}
