//! Two probes at once: each point calls both, in order.

use super::{Arrival, From, Next, Probe, Push, Scheduler, Theft, Wakes};
use crate::config::Config;
use ganger_proc_api::{CommandId, Event, EventQueue, ExitReason, Pid, Symbol, Tag};
use std::sync::Arc;

/// Points whose arguments are the same for both.
macro_rules! tell_both {
    ($(fn $point:ident($($arg:ident: $type:ty),*);)*) => {$(
        #[inline(always)]
        fn $point(&self, $($arg: $type),*) {
            self.0.$point($($arg),*);
            self.1.$point($($arg),*);
        }
    )*};
}

impl<A: Probe, B: Probe> Probe for (A, B) {
    type Process = (A::Process, B::Process);
    type Sent = (A::Sent, B::Sent);
    type Observed = (A::Observed, B::Observed);
    type Guard<'a>
        = (A::Guard<'a>, B::Guard<'a>)
    where
        Self: 'a;

    fn new(config: &Config, slots: usize) -> Self {
        (A::new(config, slots), B::new(config, slots))
    }

    fn process(&self) -> Self::Process {
        (self.0.process(), self.1.process())
    }

    each_plain_point!(tell_both);

    #[inline(always)]
    fn waking(&self, worker: impl Fn() -> Option<usize> + Copy) -> Self::Guard<'_> {
        (self.0.waking(worker), self.1.waking(worker))
    }

    #[inline(always)]
    fn pushing(
        &self,
        process: &Self::Process,
        push: Push,
        before: impl Fn() -> usize + Copy,
    ) -> Self::Guard<'_> {
        let first = self.0.pushing(&process.0, push, before);
        (first, self.1.pushing(&process.1, push, before))
    }

    #[inline(always)]
    fn picked(&self, worker: usize, process: &Self::Process) {
        self.0.picked(worker, &process.0);
        self.1.picked(worker, &process.1);
    }

    #[inline(always)]
    fn observe(&self, victim: usize) -> Self::Observed {
        (self.0.observe(victim), self.1.observe(victim))
    }

    #[inline(always)]
    fn stole(&self, thief: usize, taken: (usize, usize), observed: Self::Observed, theft: Theft) {
        self.0.stole(thief, taken, observed.0, theft);
        self.1.stole(thief, taken, observed.1, theft);
    }

    #[inline(always)]
    fn turn_begins(&self, process: &Self::Process) {
        self.0.turn_begins(&process.0);
        self.1.turn_begins(&process.1);
    }

    #[inline(always)]
    fn born(
        &self,
        id: u64,
        process: &Self::Process,
        parent: impl Fn(&mut dyn FnMut(&Self::Process)) + Copy,
    ) {
        self.0
            .born(id, &process.0, |f| parent(&mut |parent| f(&parent.0)));
        self.1
            .born(id, &process.1, |f| parent(&mut |parent| f(&parent.1)));
    }

    #[inline(always)]
    fn labelled(&self, process: &Self::Process, label: &str) {
        self.0.labelled(&process.0, label);
        self.1.labelled(&process.1, label);
    }

    #[inline(always)]
    fn label_of(&self, process: &Self::Process) -> Option<Arc<str>> {
        let first = self.0.label_of(&process.0);
        first.or_else(|| self.1.label_of(&process.1))
    }

    #[inline(always)]
    fn readied(&self, process: &Self::Process) {
        self.0.readied(&process.0);
        self.1.readied(&process.1);
    }

    #[inline(always)]
    fn spawned(
        &self,
        id: u64,
        process: &Self::Process,
        parent: u64,
        of: impl Fn() -> &'static str + Copy,
    ) {
        self.0.spawned(id, &process.0, parent, of);
        self.1.spawned(id, &process.1, parent, of);
    }

    #[inline(always)]
    fn woken(&self, id: u64, process: &Self::Process, wakes: Wakes) {
        self.0.woken(id, &process.0, wakes);
        self.1.woken(id, &process.1, wakes);
    }

    #[inline(always)]
    fn step_begins(
        &self,
        id: u64,
        process: &Self::Process,
        events: (
            usize,
            impl Fn() -> usize + Copy,
            impl Fn(&mut dyn FnMut(&Event)) + Copy,
        ),
        waiting: impl Fn() -> usize + Copy,
        worker: impl Fn() -> Option<usize> + Copy,
        of: impl Fn() -> &'static str + Copy,
    ) {
        (self.0).step_begins(id, &process.0, events, waiting, worker, of);
        (self.1).step_begins(id, &process.1, events, waiting, worker, of);
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
        (self.0).turn_over(id, &process.0, next, waiting, worker, of);
        (self.1).turn_over(id, &process.1, next, waiting, worker, of);
    }

    #[inline(always)]
    fn put_behind(&self, process: &Self::Process, items: usize) {
        self.0.put_behind(&process.0, items);
        self.1.put_behind(&process.1, items);
    }

    #[inline(always)]
    fn putting<'a>(
        &self,
        id: u64,
        process: &Self::Process,
        items: impl Iterator<Item = Arrival<'a>> + Clone,
    ) {
        self.0.putting(id, &process.0, items.clone());
        self.1.putting(id, &process.1, items);
    }

    #[inline(always)]
    fn put_first<'a>(
        &self,
        id: u64,
        process: &Self::Process,
        items: usize,
        seen: impl Iterator<Item = Arrival<'a>> + Clone,
    ) {
        self.0.put_first(id, &process.0, items, seen.clone());
        self.1.put_first(id, &process.1, items, seen);
    }

    #[inline(always)]
    fn received(&self, process: &Self::Process, items: usize) {
        self.0.received(&process.0, items);
        self.1.received(&process.1, items);
    }

    #[inline(always)]
    fn firing(&self, worker: impl Fn() -> Option<usize> + Copy, late: impl Fn() -> u64 + Copy) {
        self.0.firing(worker, late);
        self.1.firing(worker, late);
    }

    #[inline(always)]
    fn turn_ends(&self, process: &Self::Process) {
        self.0.turn_ends(&process.0);
        self.1.turn_ends(&process.1);
    }

    #[inline(always)]
    fn dropping<'a>(&self, pid: Pid, items: impl Iterator<Item = Arrival<'a>> + Clone) {
        self.0.dropping(pid, items.clone());
        self.1.dropping(pid, items);
    }

    #[inline(always)]
    fn sending<'a>(&self, items: impl Iterator<Item = Arrival<'a>> + Clone) -> Self::Sent {
        (self.0.sending(items.clone()), self.1.sending(items))
    }

    #[inline(always)]
    fn accepted(&self, pid: Pid, sent: Self::Sent) {
        self.0.accepted(pid, sent.0);
        self.1.accepted(pid, sent.1);
    }
}
