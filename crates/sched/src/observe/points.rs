//! The acts at each point of the probe.
//!
//! The hot code of an unobserved scheduler is a look at a null pointer. All else is in functions of
//! its own.

use super::labels::Label;
use super::{Observation, Observed, Record};
use crate::base::level::Observe;
use crate::base::shares::Spends;
use crate::config::Config;
use crate::probe::{Arrival, From, Next, Probe, Theft, Wakes};
use ganger_proc_api::{CommandId, Event, ExitReason, Pid, Symbol, Tag};
use std::sync::Arc;

impl Probe for Observation {
    type Process = Option<Box<Record>>;
    type Sent = ();
    type Observed = ();
    type Guard<'a> = ();

    fn new(config: &Config, slots: usize) -> Self {
        // The records of processes tell the points whether anything is recorded or traced.
        let most = || config.observe.max(Observe::Counts);
        let new = || Box::new(Observed::new(most(), config, slots));
        let is_more = config.record.is_some() || config.tracer.is_some();
        Self((config.observe > Observe::Off || is_more).then(new))
    }

    fn process(&self) -> Option<Box<Record>> {
        self.0.is_some().then(Box::default)
    }

    #[inline(always)]
    fn born(
        &self,
        id: u64,
        process: &Self::Process,
        parent: impl Fn(&mut dyn FnMut(&Self::Process)) + Copy,
    ) {
        if let Some(record) = process {
            self.see_birth(id, record, parent);
        }
    }

    fn labelled(&self, process: &Self::Process, label: &str) {
        if let Some((observed, record)) = self.with(process) {
            record.set_label(observed.labels.of(label));
        }
    }

    fn label_of(&self, process: &Self::Process) -> Option<Arc<str>> {
        self.label(process)
    }

    #[inline(always)]
    fn readied(&self, process: &Self::Process) {
        if let Some(record) = process {
            self.see_ready(record);
        }
    }

    #[inline(always)]
    fn spawned(
        &self,
        id: u64,
        process: &Self::Process,
        parent: u64,
        of: impl Fn() -> &'static str + Copy,
    ) {
        if process.is_some() {
            self.see_spawn(id, parent, of);
        }
    }

    #[inline(always)]
    fn woken(&self, id: u64, process: &Self::Process, wakes: Wakes) {
        if process.is_some() {
            self.see_wake(id, wakes);
        }
    }

    #[inline(always)]
    fn putting<'a>(
        &self,
        id: u64,
        process: &Self::Process,
        items: impl Iterator<Item = Arrival<'a>> + Clone,
    ) {
        if process.is_some() {
            self.see_put(id, items);
        }
    }

    #[inline(always)]
    fn put_first<'a>(
        &self,
        id: u64,
        process: &Self::Process,
        items: usize,
        seen: impl Iterator<Item = Arrival<'a>> + Clone,
    ) {
        if let Some(record) = process {
            self.see_first(id, record, items, seen);
        }
    }

    #[inline(always)]
    fn put_behind(&self, process: &Self::Process, items: usize) {
        if let Some(record) = process {
            self.see_behind(record, items);
        }
    }

    #[inline(always)]
    fn received(&self, process: &Self::Process, items: usize) {
        if let Some(record) = process {
            see_received(record, items);
        }
    }

    #[inline(always)]
    fn step_begins(
        &self,
        id: u64,
        process: &Self::Process,
        (events, system, each): (
            usize,
            impl Fn() -> usize + Copy,
            impl Fn(&mut dyn FnMut(&Event)) + Copy,
        ),
        waiting: impl Fn() -> usize + Copy,
        worker: impl Fn() -> Option<usize> + Copy,
        of: impl Fn() -> &'static str + Copy,
    ) {
        if let Some(record) = process {
            let events = (events, system(), each);
            self.see_step((id, record), events, waiting(), worker(), of);
        }
    }

    #[inline(always)]
    fn turn_over(
        &self,
        id: u64,
        process: &Self::Process,
        next: Next,
        waiting: impl Fn() -> usize + Copy,
        worker: impl Fn() -> Option<usize> + Copy,
        of: impl Fn() -> &'static str + Copy,
    ) {
        if let Some(record) = process {
            self.see_turn((id, record), next, waiting(), worker(), of);
        }
    }

    #[inline(always)]
    fn firing(&self, worker: impl Fn() -> Option<usize> + Copy, late: impl Fn() -> u64 + Copy) {
        if let Some(observed) = &self.0
            && observed.measures()
        {
            let place = observed.place(worker());
            let samples = place.map_or(&observed.outside, |it| &it.samples);
            samples.add(|it| it.add_timer(late()));
        }
        if let Some(flight) = self.flight() {
            flight.firing(worker(), late());
        }
    }

    #[inline(always)]
    fn stole(&self, thief: usize, taken: (usize, usize), (): (), _: Theft) {
        if let Some(flight) = self.flight() {
            flight.stole(thief, taken);
        }
    }

    #[inline(always)]
    fn taking(&self, worker: usize, from: From) {
        if let Some(flight) = self.flight() {
            flight.taking(worker, from);
        }
    }

    #[inline(always)]
    fn replaced(&self, worker: usize) {
        if let Some(flight) = self.flight() {
            flight.replaced(self.own(), worker);
        }
    }

    #[inline(always)]
    fn yielded(&self, pid: Pid, command: CommandId, tag: Tag, token: u64) {
        if self.0.is_some() {
            self.see_yield(pid.id(), command, tag, token);
        }
    }

    #[inline(always)]
    fn answered_inline(&self, pid: Pid, _: Tag, token: u64) {
        if self.0.is_some() {
            self.see_answer(pid.id(), token);
        }
    }

    #[inline(always)]
    fn ended(&self, pid: Pid, _: Symbol, reason: &ExitReason) {
        if self.0.is_some() {
            self.see_end(pid.id(), reason);
        }
    }

    #[inline(always)]
    fn searching(&self, worker: usize) {
        self.spend(worker, Spends::Search);
        if let Some(flight) = self.flight() {
            flight.leaves(worker);
        }
    }

    #[inline(always)]
    fn found(&self, worker: usize) {
        self.spend(worker, Spends::Work);
    }

    #[inline(always)]
    fn sleeping(&self, worker: usize) {
        self.spend(worker, Spends::Sleep);
        if let Some(flight) = self.flight() {
            flight.sleeps(worker, true);
        }
    }

    #[inline(always)]
    fn awake(&self, worker: usize) {
        self.spend(worker, Spends::Search);
        if let Some(flight) = self.flight() {
            flight.sleeps(worker, false);
        }
    }

    #[inline(always)]
    fn retiring(&self, worker: usize) {
        self.spend(worker, Spends::Nothing);
        if let Some(flight) = self.flight() {
            flight.leaves(worker);
        }
    }
}

/// The points with a record. Each is a function of its own, so the hot code of an unobserved
/// scheduler is a look and stays in registers.
impl Observation {
    #[cold]
    #[inline(never)]
    fn see_birth(
        &self,
        id: u64,
        record: &Record,
        parent: impl Fn(&mut dyn FnMut(&Option<Box<Record>>)),
    ) {
        let Some(observed) = &self.0 else { return };
        let mut label = Label::NONE;
        parent(&mut |it| label = it.as_deref().map_or(Label::NONE, Record::label));
        record.begin(id, label, observed.now());
    }

    #[cold]
    #[inline(never)]
    fn see_ready(&self, record: &Record) {
        let Some(observed) = &self.0 else { return };
        record.note_ready(|| observed.now());
    }

    #[cold]
    #[inline(never)]
    fn see_first<'a>(
        &self,
        id: u64,
        record: &Record,
        items: usize,
        seen: impl Iterator<Item = Arrival<'a>>,
    ) {
        let Some(observed) = &self.0 else { return };
        if let Some(flight) = &observed.flight {
            flight.put(id, self.own(), seen, true);
        }
        record.put_first(items);
        if record.note_ready(|| observed.now()) && items > 0 {
            record.note_mail(0, observed.now());
        }
    }

    #[cold]
    #[inline(never)]
    fn see_put<'a>(&self, id: u64, items: impl Iterator<Item = Arrival<'a>>) {
        if let Some(flight) = self.flight() {
            flight.put(id, self.own(), items, false);
        }
    }

    #[cold]
    #[inline(never)]
    fn see_spawn(&self, id: u64, parent: u64, of: impl Fn() -> &'static str) {
        if let Some(flight) = self.flight() {
            flight.spawned(id, parent, self.own(), of);
        }
    }

    #[cold]
    #[inline(never)]
    fn see_wake(&self, id: u64, wakes: Wakes) {
        if let Some(flight) = self.flight() {
            flight.woken(id, self.own(), wakes);
        }
    }

    #[cold]
    #[inline(never)]
    fn see_yield(&self, id: u64, command: CommandId, tag: Tag, token: u64) {
        if let Some(flight) = self.flight() {
            flight.yielded(id, self.own(), command, (tag, token));
        }
    }

    #[cold]
    #[inline(never)]
    fn see_answer(&self, id: u64, token: u64) {
        if let Some(flight) = self.flight() {
            flight.answered(id, self.own(), token);
        }
    }

    #[cold]
    #[inline(never)]
    fn see_end(&self, id: u64, reason: &ExitReason) {
        if let Some(flight) = self.flight() {
            flight.ended(id, self.own(), reason);
        }
    }

    #[cold]
    #[inline(never)]
    fn see_behind(&self, record: &Record, items: usize) {
        if let (Some(observed), Some(ahead)) = (&self.0, record.put_behind(items)) {
            record.note_mail(ahead, observed.now());
        }
    }

    #[cold]
    #[inline(never)]
    fn see_step(
        &self,
        (id, record): (u64, &Record),
        (events, system, each): (usize, usize, impl Fn(&mut dyn FnMut(&Event))),
        waiting: usize,
        worker: Option<usize>,
        of: impl Fn() -> &'static str,
    ) {
        let Some(observed) = &self.0 else { return };
        record.step(events + system, waiting);
        if let Some(flight) = &observed.flight {
            flight.step(id, worker, &of, each);
        }
        let place = observed.place(worker);
        observed.count_events(place, (events + system) as u64);
        if record.has_waits() {
            observed.end_waits(record, place, events, of());
        }
        if let Some(place) = place {
            observed.end_step(record, place, of);
            if place.is_sampled() {
                observed.begin_step(place);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn see_turn(
        &self,
        (id, record): (u64, &Record),
        next: Next,
        waiting: usize,
        worker: Option<usize>,
        of: impl Fn() -> &'static str,
    ) {
        let Some(observed) = &self.0 else { return };
        record.end_turn(waiting);
        if let Some(flight) = &observed.flight {
            flight.turn(id, next, worker, &of);
        }
        // For a process that is queued again at once. A sender that wakes a waiting process notes
        // another moment.
        record.note_ready(|| observed.now());
        if let Some(place) = observed.place(worker) {
            observed.end_step(record, place, of);
        }
    }
}

#[cold]
#[inline(never)]
fn see_received(record: &Record, items: usize) {
    record.receive(items);
}
