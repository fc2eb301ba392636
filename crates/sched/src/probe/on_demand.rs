//! A probe for a few schedulers.

use super::{Arrival, From, Probe, Push, Scheduler, Theft};
use crate::config::Config;
use ganger_proc_api::{CommandId, Event, EventQueue, ExitReason, Pid, Symbol, Tag};

/// A probe for schedulers with `Builder::check_promises`. In all other schedulers a point is a look
/// at a constant field.
///
/// So a program built with the simulation loses nothing where it runs on threads: cargo turns
/// features on for all crates of a build.
pub(crate) struct OnDemand<P>(Option<Box<P>>);

impl<P> OnDemand<P> {
    pub(crate) fn get(&self) -> Option<&P> {
        self.0.as_deref()
    }

    #[inline(always)]
    fn look<'a, R: Default>(&'a self, f: impl FnOnce(&'a P) -> R) -> R {
        match &self.0 {
            Some(probe) => apart(move || f(probe)),
            None => R::default(),
        }
    }
}

#[cold]
#[inline(never)]
fn apart<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Implements points by passing their arguments on.
macro_rules! tell {
    ($(fn $point:ident($($arg:ident: $type:ty),*);)*) => {$(
        #[inline(always)]
        fn $point(&self, $($arg: $type),*) {
            self.look(move |probe| probe.$point($($arg),*));
        }
    )*};
}

impl<P: Probe> Probe for OnDemand<P> {
    type Process = Option<Box<P::Process>>;
    type Sent = Option<P::Sent>;
    type Observed = Option<P::Observed>;
    type Guard<'a>
        = Option<P::Guard<'a>>
    where
        Self: 'a;

    fn new(config: &Config, slots: usize) -> Self {
        let new = || Box::new(P::new(config, slots));
        Self(config.is_checked.then(new))
    }

    fn process(&self) -> Self::Process {
        self.get().map(|probe| Box::new(probe.process()))
    }

    each_plain_point!(tell);

    #[inline(always)]
    fn waking(&self, worker: impl Fn() -> Option<usize> + Copy) -> Self::Guard<'_> {
        self.look(move |probe| Some(probe.waking(worker)))
    }

    #[inline(always)]
    fn pushing(
        &self,
        process: &Self::Process,
        push: Push,
        before: impl Fn() -> usize + Copy,
    ) -> Self::Guard<'_> {
        self.look(move |probe| Some(probe.pushing(process.as_deref()?, push, before)))
    }

    #[inline(always)]
    fn picked(&self, worker: usize, process: &Self::Process) {
        self.look(move |probe| process.iter().for_each(|it| probe.picked(worker, it)));
    }

    #[inline(always)]
    fn observe(&self, victim: usize) -> Self::Observed {
        self.look(move |probe| Some(probe.observe(victim)))
    }

    #[inline(always)]
    fn stole(&self, thief: usize, taken: (usize, usize), observed: Self::Observed, theft: Theft) {
        self.look(move |probe| probe.stole(thief, taken, observed.unwrap_or_default(), theft));
    }

    #[inline(always)]
    fn turn_begins(&self, process: &Self::Process) {
        self.look(move |probe| process.iter().for_each(|it| probe.turn_begins(it)));
    }

    #[inline(always)]
    fn turn_ends(&self, process: &Self::Process) {
        self.look(move |probe| process.iter().for_each(|it| probe.turn_ends(it)));
    }

    #[inline(always)]
    fn dropping<'a>(&self, pid: Pid, items: impl Iterator<Item = Arrival<'a>> + Clone) {
        self.look(move |probe| probe.dropping(pid, items));
    }

    #[inline(always)]
    fn sending<'a>(&self, items: impl Iterator<Item = Arrival<'a>> + Clone) -> Self::Sent {
        self.look(move |probe| Some(probe.sending(items)))
    }

    #[inline(always)]
    fn accepted(&self, pid: Pid, sent: Self::Sent) {
        self.look(move |probe| probe.accepted(pid, sent.unwrap_or_default()));
    }
}
