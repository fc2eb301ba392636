//! The part of a process for its runner alone: the state machine itself, the events out of the
//! mailbox, and the outstanding yields.

use crate::base::contain::{contain_and_report, discard, discard_each};
use crate::base::stats::Counters;
use crate::probe::Cause;
use crate::process::about::About;
use crate::process::asked::Asked;
use crate::process::exit_action::ExitAction;
#[cfg(feature = "observe")]
use crate::process::exit_action::Watcher;
use crate::process::exit_actions::{ExitActions, ExitRequest};
use crate::process::exit_signal::ExitSignal;
use crate::process::outstanding::{Outstanding, Taken, Tickets};
use crate::process::process_box::ProcessBox;
use crate::process::revoked::{OwnRevoked, Revoked};
use crate::process::state::State;
use crate::runtime::causes::Causes;
use crate::runtime::ending::Ending;
use crate::runtime::item::Item;
use crate::runtime::side_queues::{BatchPlan, SideQueues};
use crate::runtime::step_events::StepEvents;
use ganger_mpsc::{Batch, Single};
use ganger_proc_api::internal::EventCursor;
use ganger_proc_api::{
    CancelReason, Completion, EndCall, Event, Pid, Process, Tag, UpgradeRequest,
};
use ganger_time::internal::Ticket;
use std::mem;
use std::sync::{Arc, Weak};

pub(crate) struct Core {
    /// None once the process has ended.
    pub(crate) process: Option<ProcessBox>,
    /// Taken out of the mailbox, not yet shown to a step; no system events.
    pub(crate) pending: Batch<Item>,
    /// None when the queues are empty. A thin pointer, because almost no process needs it.
    pub(crate) aside: Option<Box<SideQueues>>,
    pub(crate) yields: Outstanding,
    /// Above 0: step even without an event. This holds for the first step, for a step that shows
    /// system events, and for the step after `step_again`, a wake or an upgrade. Counts the steps
    /// in a row with the result `step_again` and without a new event, up to a bound.
    pub(crate) repeats: u16,
    /// Whether a warning has reported the process for continuing without an event.
    pub(crate) has_warned: bool,
    /// Whether a counted reference to the process is its own, for its next completer: a handler
    /// with an immediate answer returns the reference, and no command counts one. Clear once the
    /// process has ended.
    pub(crate) has_self_ref: bool,
    /// How many answers of this turn have come before their handlers returned, with nothing else
    /// pending. Their yields are not among `yields`: they are outstanding as long as they count
    /// here.
    answers: u32,
}

/// The frequent decisions on the next step.
#[must_use]
#[derive(Clone, Copy)]
pub(crate) enum Frequent {
    /// Step, with this many new events, the first in `pending`.
    Step(usize),
    /// Nothing happened: wait on.
    Nothing,
    /// Ask [`Core::gather_rare`]: the item behind this many events is no event, or the side queues
    /// are not empty.
    Rare(usize),
}

/// The decision on the next step.
#[must_use]
pub(crate) enum Gathered {
    /// Step, with the left events and this many new ones, the first in `pending`.
    Step(usize),
    /// Step in the same way; the step is the first to be shown a cancellation, for this reason.
    Cancel(CancelReason, usize),
    /// Nothing happened: wait on.
    Nothing,
    /// Replace the process first.
    Upgrade(Box<UpgradeRequest>),
    /// Ask a signal first, with its cause.
    Signal(Box<dyn ExitSignal>, Option<Cause>),
    /// No further step: the process has been terminated, perhaps by a user's call made here.
    Terminated,
    /// Settle the next message, which its timer may have returned to the sender, and then gather
    /// more: the batch has this room left.
    HeldByTimer(usize),
}

impl Default for Core {
    #[inline(always)]
    fn default() -> Self {
        Self {
            process: None,
            pending: Batch::new(),
            aside: None,
            yields: Outstanding::default(),
            repeats: 0,
            has_warned: false,
            has_self_ref: false,
            answers: 0,
        }
    }
}

impl Core {
    /// Creates the core of a process before its first step. Inlined into its final place.
    #[inline(always)]
    pub(crate) fn new(process: ProcessBox) -> Self {
        Self {
            process: Some(process),
            repeats: 1,
            ..Self::default()
        }
    }

    /// Moves arrived items into `pending`; `see` looks at them and counts the causes. A single RMW
    /// when something has arrived, else none.
    #[inline(always)]
    pub(crate) fn receive(&mut self, state: &State<Item>, see: impl FnOnce(&Batch<Item>) -> usize) {
        if state.has_events() {
            self.expect_answers();
            let arrived = state.drain();
            let causes = see(&arrived);
            self.expect_causes(causes);
            if state.may_hold_system() {
                self.partition(arrived);
            } else {
                self.pending.append(arrived);
            }
        }
    }

    /// Receives arrived items as `receive` does, where system events may be among them.
    #[cold]
    #[inline(never)]
    fn partition(&mut self, arrived: Batch<Item>) {
        let aside = self.aside.get_or_insert_default();
        self.pending.append(aside.partition(arrived));
        if aside.is_empty() {
            self.aside = None;
        }
    }

    /// Returns whether system events have left the mailbox and wait.
    pub(crate) fn has_system(&self) -> bool {
        (self.aside.as_ref()).is_some_and(|aside| !aside.system.is_empty())
    }

    /// Returns whether earlier steps have left events.
    pub(crate) fn has_left(&self) -> bool {
        (self.aside.as_ref()).is_some_and(|aside| aside.untaken() > 0)
    }

    /// Adds the answer of a handler that has answered a yield before it returned, as the last
    /// arrived item.
    pub(crate) fn push_answer(&mut self, tag: Tag, token: u64, answer: Single<Item>) {
        if self.has_answers_alone() {
            self.answers += 1;
        } else {
            self.yields.insert(token, tag, Asked::default());
        }
        self.pending.append(answer.into_batch());
    }

    /// Returns whether nothing is pending but answers of this turn.
    pub(crate) fn has_answers_alone(&self) -> bool {
        self.pending.len() == self.answers as usize
    }

    /// Makes the answers' yields outstanding like all others: more than the next step of this turn
    /// may see the answers.
    pub(crate) fn expect_answers(&mut self) {
        if self.answers > 0 {
            self.expect_each_answer();
        }
    }

    #[cold]
    #[inline(never)]
    fn expect_each_answer(&mut self) {
        self.answers = 0;
        for item in &self.pending {
            if let Item::Event(Event::Completion(answer)) = item {
                self.yields
                    .insert(answer.token(), answer.tag, Asked::default());
            }
        }
    }

    /// Takes back all yields of the process with this tag. Returns the end calls to make, and the
    /// timers' entries to forget.
    #[cold]
    pub(crate) fn take_back(
        &mut self,
        tag: Tag,
        pid: Pid,
        (state, revoked): (&State<Item>, &Arc<Revoked>),
        counters: &Counters,
    ) -> (Vec<Weak<EndCall>>, Tickets) {
        self.drop_left(pid, counters, |completion| completion.tag == tag);
        let own = || OwnRevoked::new(revoked, pid.id());
        let Taken { tokens, tickets } = self.yields.take_back(tag, own);
        if tokens.is_empty() {
            return (Vec::new(), tickets);
        }
        state.mark_taking_back();
        self.settle_causes(|causes| causes.forget(&tokens));
        (self.take_calls(&tokens), tickets)
    }

    /// Takes the calls of these yields, which are in order.
    fn take_calls(&mut self, tokens: &[u64]) -> Vec<Weak<EndCall>> {
        let Some(aside) = &mut self.aside else {
            return Vec::new();
        };
        let Some(actions) = &mut aside.exit_actions else {
            return Vec::new();
        };
        let calls = actions.take_calls(tokens);
        self.forget_exit_actions();
        calls
    }

    /// Carries out a request concerning the end. Returns its share of a batch.
    fn apply(&mut self, request: ExitRequest, counters: &Counters) -> usize {
        if let ExitRequest::Call(it) = &request
            && self.yields.is_revoked(it.token)
        {
            if let Some(call) = it.call.upgrade() {
                contain_and_report("on_end", None, counters, || call.call());
            }
            return 1;
        }
        let aside = self.aside.get_or_insert_default();
        let actions = aside.exit_actions.get_or_insert_default();
        let cost = actions.apply(request, counters);
        self.forget_exit_actions();
        cost
    }

    /// Takes the exit actions of a finished incarnation, also the newly arrived ones, for another
    /// incarnation takes its place. O(mailbox).
    #[cold]
    pub(crate) fn take_of_incarnation(&mut self, counters: &Counters) -> Vec<Box<dyn ExitAction>> {
        if self.pending.iter().any(|it| matches!(it, Item::Exit(_))) {
            let mut rest = Batch::new();
            for item in mem::take(&mut self.pending) {
                match item {
                    Item::Exit(request) => _ = self.apply(request, counters),
                    item => rest.push_back(item),
                }
            }
            self.pending = rest;
        }
        let aside = self.aside.as_mut();
        let actions = aside.and_then(|aside| aside.exit_actions.as_mut());
        let taken = actions.map(|it| it.take_of_incarnation(counters));
        self.forget_exit_actions();
        taken.unwrap_or_default()
    }

    /// Calls `look` for watchers as [`ExitActions::each_watcher`] does.
    #[cfg(feature = "observe")]
    pub(crate) fn each_watcher(
        &self,
        most: usize,
        counters: &Counters,
        look: impl FnMut(Watcher),
    ) -> usize {
        let aside = self.aside.as_ref();
        let actions = aside.and_then(|aside| aside.exit_actions.as_ref());
        actions.map_or(0, |it| it.each_watcher(most, counters, look))
    }

    /// Lets the exit actions count `events` events.
    fn pass_exit_actions(&mut self, events: usize, counters: &Counters) {
        let aside = self.aside.as_mut();
        if let Some(actions) = aside.and_then(|aside| aside.exit_actions.as_mut()) {
            actions.pass(events, counters);
            self.forget_exit_actions();
        }
    }

    /// Frees the memory of empty exit actions, and of empty side queues.
    fn forget_exit_actions(&mut self) {
        let Some(aside) = &mut self.aside else { return };
        if aside.exit_actions.as_ref().is_some_and(|it| it.is_empty()) {
            aside.exit_actions = None;
        }
        if aside.is_empty() {
            self.aside = None;
        }
    }

    /// Decides on the next step, where `pending` begins with events, at most `limit` of them, and
    /// the side queues are empty.
    #[inline(always)]
    pub(crate) fn gather(&mut self, limit: usize) -> Frequent {
        if self.answers > 0 {
            let answers = self.answers as usize;
            if answers <= limit && self.aside.is_none() {
                self.answers = 0;
                self.repeats = 0;
                return Frequent::Step(answers);
            }
            self.expect_answers();
        }
        if self.aside.is_some() {
            return Frequent::Rare(0);
        }
        self.gather_events(limit)
    }

    #[inline(always)]
    fn gather_events(&mut self, limit: usize) -> Frequent {
        let mut events = 0;
        for item in self.pending.iter().take(limit) {
            let is_event = match item {
                Item::Event(Event::Completion(completion)) => {
                    self.yields.finish(completion.token())
                }
                Item::Event(_) => true,
                _ => false,
            };
            if !is_event {
                return Frequent::Rare(events);
            }
            events += 1;
        }
        self.step(events)
    }

    /// Gathers events as [`gather`](Self::gather) does, which has found `events`, in all other
    /// cases. The new system events of the step join the left events, in front of the others. If a
    /// system event has to wait, because the batch is full or an upgrade is next, none of the other
    /// events is new.
    #[cold]
    #[inline(never)]
    pub(crate) fn gather_rare(
        &mut self,
        state: &State<Item>,
        events: usize,
        limit: usize,
        counters: &Counters,
    ) -> Gathered {
        if self.aside.is_none() {
            return self.gather_more(state, events, limit, counters);
        }
        match self.share_with_system(state, limit, counters) {
            BatchPlan::Upgrade(request) => Gathered::Upgrade(request),
            BatchPlan::Signal(signal, cause) => Gathered::Signal(signal, cause),
            BatchPlan::Room(room) => match self.gather_events(room) {
                Frequent::Rare(events) => self.gather_more(state, events, room, counters),
                frequent => self.gathered(frequent),
            },
        }
    }

    /// Adds a cancellation that is new to the step.
    fn gathered(&mut self, frequent: Frequent) -> Gathered {
        let Frequent::Step(events) = frequent else {
            return Gathered::Nothing;
        };
        let aside = self.aside.as_mut();
        match aside.and_then(|aside| aside.cancel.take()) {
            Some(reason) => Gathered::Cancel(reason, events),
            None => Gathered::Step(events),
        }
    }

    /// Takes the system lane's share of a batch.
    fn share_with_system(
        &mut self,
        state: &State<Item>,
        limit: usize,
        counters: &Counters,
    ) -> BatchPlan {
        self.pass_exit_actions(1 + self.pending.len().min(limit), counters);
        let Some(aside) = self.aside.as_mut().filter(|aside| !aside.is_quiet()) else {
            return BatchPlan::Room(limit);
        };
        let waiting = aside.system.len();
        let share = aside.share(limit, !self.pending.is_empty());
        let taken = waiting - aside.system.len();
        if aside.is_empty() {
            self.aside = None;
        }
        if taken > 0 {
            state.take_system(taken);
            if !matches!(share, BatchPlan::Upgrade(_) | BatchPlan::Signal(..)) {
                self.repeats = 1;
            }
        }
        share
    }

    /// Shows the event to the next step, behind the other system events of the step.
    #[cold]
    pub(crate) fn show_last(&mut self, event: Event) {
        let aside = self.aside.get_or_insert_default();
        aside.show_last(Item::Event(event));
        self.must_step();
    }

    /// Returns whether the next system event is a signal.
    pub(crate) fn signal_is_next(&self) -> bool {
        let aside = self.aside.as_ref();
        let next = aside.and_then(|aside| aside.system.iter().next());
        matches!(next.map(Item::bare), Some(Item::Signal(_)))
    }

    /// Has a step follow, even without an event.
    pub(crate) fn must_step(&mut self) {
        self.repeats = self.repeats.max(1);
    }

    /// Continues [`gather`](Self::gather) behind the first `events` of `pending`, where an item is
    /// no event for the step, or with a settled message of a source.
    pub(crate) fn gather_more(
        &mut self,
        state: &State<Item>,
        events: usize,
        limit: usize,
        counters: &Counters,
    ) -> Gathered {
        let mut gathered = self.pending.split_to(events);
        // An item for no step takes its time as well.
        let mut spent = 0;
        let mut causes = 0;
        while gathered.len() + spent < limit
            && !self.is_held_next()
            && !self.cause_waits(causes == limit, !gathered.is_empty())
            && let Some(item) = self.pending.pop_front()
        {
            match item {
                Item::Nudge => {}
                Item::Wake => {
                    state.take_wake();
                    self.must_step();
                }
                Item::Call(call) => {
                    spent += 1;
                    contain_and_report("call between steps", None, counters, call);
                }
                Item::Exit(request) => spent += self.apply(request, counters),
                Item::Cause(cause) => {
                    causes += 1;
                    self.causes().arrive(cause);
                }
                Item::Event(Event::Completion(completion))
                    if !self.yields.finish(completion.token()) =>
                {
                    counters.stale_completions.bump();
                    discard(None, counters, completion);
                }
                Item::Event(_) => gathered.push_back(item),
                Item::Upgrade(_) | Item::Signal(_) | Item::Caused(..) => {
                    unreachable!("it is in the system lane")
                }
                Item::HeldByTimer(_) => unreachable!("it is first, and has been looked for"),
            }
        }
        let events = gathered.len();
        if events == 0 && spent < limit && self.is_held_next() {
            return Gathered::HeldByTimer(limit - spent);
        }
        gathered.append(mem::take(&mut self.pending));
        self.pending = gathered;
        // Users' code may have been called since the turn began.
        if state.is_terminating() {
            return Gathered::Terminated;
        }
        let frequent = self.step(events);
        self.gathered(frequent)
    }

    fn is_held_next(&self) -> bool {
        matches!(self.pending.iter().next(), Some(Item::HeldByTimer(_)))
    }

    /// Settles the next message, which `take` gets from its timer: from now on it is an event.
    /// Returns `false` when the sender has taken it back.
    #[cold]
    #[inline(never)]
    pub(crate) fn settle_held(&mut self, take: impl FnOnce(Ticket) -> Option<Event>) -> bool {
        if let Some(Item::HeldByTimer(ticket)) = self.pending.pop_front()
            && let Some(event) = take(ticket)
        {
            let mut first = Batch::of(Item::Event(event));
            first.append(mem::take(&mut self.pending));
            self.pending = first;
            return true;
        }
        false
    }

    fn step(&mut self, events: usize) -> Frequent {
        if events == 0 && self.repeats == 0 {
            return Frequent::Nothing;
        }
        if events > 0 && self.repeats > 0 {
            self.repeats = 1;
        }
        Frequent::Step(events)
    }

    /// Returns the number of events seen by a step with `events` new ones.
    pub(crate) fn visible(&self, events: usize) -> usize {
        events + self.aside.as_ref().map_or(0, |aside| aside.untaken())
    }

    /// Returns a cursor over the new events of the next step, as many as have been gathered.
    pub(crate) fn cursor(&self, events: usize) -> EventCursor {
        // SAFETY: `pending` begins with `events` events, in their order, in nodes, which are links.
        // (Under loom they are no links, and the step does not use the cursor.) The events belong
        // to this step. `StepEvents` sets the cursor again when it changes the list.
        unsafe { EventCursor::new(self.pending.links().cast(), events) }
    }

    /// Returns the process, with the events of its next step.
    pub(crate) fn begin_step<'a>(
        &'a mut self,
        cursor: &'a EventCursor,
    ) -> Option<(&'a mut dyn Process, StepEvents<'a>)> {
        let process = self.process.as_mut()?.for_step();
        let events = StepEvents::new(&mut self.aside, &mut self.pending, cursor);
        Some((process, events))
    }

    /// Keeps the new events left by a step, for later steps.
    pub(crate) fn keep(&mut self, left: usize, about: &About) {
        if left > 0 || about.left() > 0 || self.has_left() {
            self.keep_some(left, about);
        }
    }

    #[cold]
    #[inline(never)]
    fn keep_some(&mut self, left: usize, about: &About) {
        if left > 0 {
            let left = self.pending.split_to(left);
            self.aside.get_or_insert_default().left.append(left);
        }
        about.set_left(self.aside.as_ref().map_or(0, |aside| aside.untaken()));
    }

    /// Forgets the yields of the predecessor, replaced by an upgrade.
    pub(crate) fn forget_yields(&mut self, pid: Pid, counters: &Counters) {
        self.yields.forget_all();
        self.settle_causes(Causes::forget_all);
        self.answers = 0;
        self.drop_left(pid, counters, |_| true);
    }

    /// Drops and counts the stale completions among the left events.
    fn drop_left(&mut self, pid: Pid, counters: &Counters, is_stale: impl Fn(&Completion) -> bool) {
        let is_stale =
            |item: &Item| matches!(item, Item::Event(Event::Completion(it)) if is_stale(it));
        let Some(aside) = &mut self.aside else {
            return;
        };
        let left = mem::take(&mut aside.left);
        let (stale, kept): (Batch<_>, Batch<_>) = left.into_iter().partition(is_stale);
        aside.left = kept;
        aside.show_again();
        if aside.is_empty() {
            self.aside = None;
        }
        counters.stale_completions.add(stale.len() as u64);
        discard_each(pid, counters, stale);
    }

    /// Takes all events out into `events`, and gives back the exit actions: the process has ended.
    pub(crate) fn take_events(&mut self, events: &mut Batch<Item>) -> Option<Box<ExitActions>> {
        *events = mem::take(&mut self.pending);
        let mut aside = self.aside.take()?;
        aside.take_events(events);
        aside.exit_actions.take()
    }

    /// Keeps the rest of the end for the next turn.
    pub(crate) fn put_off(&mut self, ending: Box<Ending>) {
        let aside = self.aside.get_or_insert_default();
        aside.rare.get_or_insert_default().ending = Some(ending);
    }

    /// Takes the rest of the end.
    pub(crate) fn take_ending(&mut self) -> Option<Box<Ending>> {
        self.aside.as_mut()?.rare.take()?.ending
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
