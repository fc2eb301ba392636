//! The probe: the scheduler's reports of its own acts, while it runs, to observers.
//!
//! **Problem.** A checker, the accounts of a simulation, metrics and traces all want to know the
//! acts of the hot code. A hook of its own for each of them hides the code that it watches.
//!
//! **Protocol.** The hot code calls the points of [`Probe`] on `Shared::probe`, and nothing else.
//! `active.rs` selects the compiled probes. Without any probe, [`Active`] has no size, each point
//! has an empty body, and the instruction counts are those of a scheduler without points. A probe's
//! data of a scheduler are the probe's value. Its data of a process are in the cell of the process,
//! as [`Probe::Process`].
//!
//! A probe observes. The decisions of a simulation, in the place of random numbers, clock and
//! threads, are in [`Decide`], which has its own default.
//!
//! **To add a point**: a method here with an empty body, a line for it in
//! `each_plain_point`, a call in the
//! hot code, and a line in the test that pins the order.
//!
//! **Imports.** The folders from `base` to `config` (`docs/ARCHITECTURE.md`).

/// Passes the points that return nothing, and whose arguments all probes take as they are, to a
/// macro.
macro_rules! each_plain_point {
    ($tell:ident) => {
        $tell! {
            fn looking(worker: usize);
            fn settled(worker: usize);
            fn falling_asleep(worker: usize, scheduler: &dyn Scheduler);
            fn watching();
            fn watched();
            fn dozing();
            fn searching(worker: usize);
            fn found(worker: usize);
            fn sleeping(worker: usize);
            fn awake(worker: usize);
            fn retiring(worker: usize);
            fn taking(worker: usize, from: From);
            fn replaced(worker: usize);
            fn initialised(pid: Pid);
            fn withdrawn(pid: Pid);
            fn shown(
                pid: Pid,
                method: Symbol,
                of: impl Fn() -> &'static str + Copy,
                events: &impl EventQueue
            );
            fn stepped(pid: Pid, left: &impl EventQueue);
            fn arrived_next(pid: Pid, event: &Event);
            fn signalled(pid: Pid, notice: Option<&Event>);
            fn upgrading(pid: Pid);
            fn upgraded(pid: Pid);
            fn closing(pid: Pid);
            fn ended(pid: Pid, method: Symbol, reason: &ExitReason);
            fn told(pid: Pid, is_told: impl Fn() -> bool + Copy);
            fn yielded(pid: Pid, command: CommandId, tag: Tag, token: u64);
            fn revoked(pid: Pid, tag: Tag);
            fn answered();
            fn answered_inline(pid: Pid, tag: Tag, token: u64);
            fn answer_refused();
            fn interleave(scheduler: &dyn Scheduler);
            fn called(scheduler: &dyn Scheduler, call: &'static str);
        }
    };
}

mod active;
mod carry;
mod decide;
#[cfg(feature = "check")]
mod on_demand;
mod pair;
#[cfg(all(test, not(ganger_loom)))]
mod tests;

pub(crate) use active::{Active, Carrier, Cause, Decider, TracedStep};
pub(crate) use carry::{Carry, StepFacts};
pub(crate) use decide::Decide;
#[cfg(feature = "check")]
pub(crate) use on_demand::OnDemand;

use crate::config::Config;
use ganger_proc_api::{CommandId, Event, EventQueue, ExitReason, Pid, Symbol, Tag};
use std::any::Any;
use std::sync::Arc;

/// A scheduler, for a probe of the whole scheduler. `runtime` alone implements it.
pub(crate) trait Scheduler: Any {}

/// The queue for a push of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Push {
    /// The deque of this worker, by the worker itself.
    Own(usize),
    Global,
    Urgent,
    /// The lane of arrivals.
    Arrival,
    /// The global queue, by a worker that gives its place away: the process was queued before.
    Moved,
}

/// The place from which a worker takes its next process, other than its own deque.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    Global,
    Urgent,
    /// The lane of arrivals.
    Arrival,
    /// Another worker's deque.
    Stolen,
}

/// The fate of a process after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Waits,
    /// The process is queued again.
    Queued,
    /// The process continues at once, in another turn.
    GoesOn,
    Ends,
}

/// The reason of a wake-up without an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wakes {
    /// A waker.
    Waker,
    /// A system event.
    System,
    /// An event that came as the process was about to wait.
    LastMoment,
}

/// How a worker takes processes of another worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theft {
    /// Half of a deque, into an empty one.
    Half,
    /// A single process, which the thief runs at once.
    One,
    /// Half of a deque whose worker has been replaced, on top of this many.
    Onto(usize),
}

/// An arrival for a process, as far as a probe tells arrivals apart.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(any(feature = "sim", feature = "observe")),
    expect(dead_code, reason = "the accounts and the recorder alone look inside")
)]
pub(crate) enum Arrival<'a> {
    Event(&'a Event),
    Upgrade,
    Signal,
}

/// The points. Each states its caller, and its report.
///
/// A costly argument is a closure, which a probe calls if it wants the value.
pub(crate) trait Probe: Sized {
    /// The data of each process, in its cell. A reused cell keeps them.
    type Process;
    /// The view of [`sending`](Self::sending).
    type Sent: Default;
    /// The view of [`observe`](Self::observe).
    type Observed: Default;
    /// Its drop is a point, too.
    type Guard<'a>: Default
    where
        Self: 'a;

    /// Makes the probe of a scheduler with this many workers and spares.
    fn new(config: &Config, slots: usize) -> Self;

    /// Makes the first data of a process.
    fn process(&self) -> Self::Process;

    // Queues and sleepers.

    /// Reports a worker about to look for a process, or to queue the process just run. Until
    /// [`settled`](Self::settled) the worker may owe a sleeper a wake-up.
    #[inline(always)]
    fn looking(&self, _worker: usize) {}

    /// Reports a worker when it has woken the owed sleepers.
    #[inline(always)]
    fn settled(&self, _worker: usize) {}

    /// Reports a worker about to block, after it has announced its sleep and looked again. The
    /// worker is settled.
    #[inline(always)]
    fn falling_asleep(&self, _worker: usize, _scheduler: &dyn Scheduler) {}

    /// Reports a thread about to push a process and to look for a sleeper to wake; `worker` returns
    /// the thread's worker. The guard is dropped after the look.
    #[inline(always)]
    fn waking(&self, _worker: impl Fn() -> Option<usize> + Copy) -> Self::Guard<'_> {
        Self::Guard::default()
    }

    /// Reports a thread about to push a process behind as many others as `before` returns. The
    /// guard is dropped after the push. Another worker may have taken the process by then.
    #[inline(always)]
    fn pushing(
        &self,
        _process: &Self::Process,
        _push: Push,
        _before: impl Fn() -> usize + Copy,
    ) -> Self::Guard<'_> {
        Self::Guard::default()
    }

    /// Reports a worker when it has taken a process from a queue to run it.
    #[inline(always)]
    fn picked(&self, _worker: usize, _process: &Self::Process) {}

    /// Observes the victim, before a thief tries to take its processes.
    #[inline(always)]
    fn observe(&self, _victim: usize) -> Self::Observed {
        Self::Observed::default()
    }

    /// Reports a thief when it has taken `count` processes of the victim, with its earlier
    /// observation.
    #[inline(always)]
    fn stole(
        &self,
        _thief: usize,
        (_victim, _count): (usize, usize),
        _observed: Self::Observed,
        _theft: Theft,
    ) {
    }

    /// Reports the monitor before a look at the workers, or before its sleep.
    #[inline(always)]
    fn watching(&self) {}

    /// Reports the monitor after a look at the workers.
    #[inline(always)]
    fn watched(&self) {}

    /// Reports the monitor before it blocks until something waits.
    #[inline(always)]
    fn dozing(&self) {}

    /// Reports a worker when it has begun to look for a process, or has found none at its first
    /// look.
    #[inline(always)]
    fn searching(&self, _worker: usize) {}

    /// Reports a worker when it has found a process after [`searching`](Self::searching).
    #[inline(always)]
    fn found(&self, _worker: usize) {}

    /// Reports a worker before it blocks.
    #[inline(always)]
    fn sleeping(&self, _worker: usize) {}

    /// Reports a worker after its sleep.
    #[inline(always)]
    fn awake(&self, _worker: usize) {}

    /// Reports a thread when it ceases to be this worker, for good or for the moment.
    #[inline(always)]
    fn retiring(&self, _worker: usize) {}

    /// Reports a worker when it has taken a process from elsewhere than its own deque, to run it.
    #[inline(always)]
    fn taking(&self, _worker: usize, _from: From) {}

    /// Reports a thread when it has had a spare take the place of the worker.
    #[inline(always)]
    fn replaced(&self, _worker: usize) {}

    /// Reports a thread about to fire the timers of a shard; `late` returns the lateness of the
    /// earliest in nanoseconds.
    #[inline(always)]
    fn firing(&self, _worker: impl Fn() -> Option<usize> + Copy, _late: impl Fn() -> u64 + Copy) {}

    // The life of a process.

    /// Reports an `init` that has returned `Ok`, for a submitter or for an upgrading worker.
    #[inline(always)]
    fn initialised(&self, _pid: Pid) {}

    /// Reports a process when its submitter does not start it after all. The process may not have
    /// been initialised.
    #[inline(always)]
    fn withdrawn(&self, _pid: Pid) {}

    /// Reports a new process with this id, before any other thread knows of the process. `parent`
    /// calls its argument with the parent, if it lives.
    #[inline(always)]
    fn born(
        &self,
        _id: u64,
        _process: &Self::Process,
        _parent: impl Fn(&mut dyn FnMut(&Self::Process)) + Copy,
    ) {
    }

    /// Reports the label for a process's account, set by the process or its parent.
    #[inline(always)]
    fn labelled(&self, _process: &Self::Process, _label: &str) {}

    /// Returns the label of a process, where a probe keeps it.
    #[inline(always)]
    fn label_of(&self, _process: &Self::Process) -> Option<Arc<str>> {
        None
    }

    /// Reports a new process, or a waiting process woken without an event, before the owner of the
    /// run token queues the process.
    #[inline(always)]
    fn readied(&self, _process: &Self::Process) {}

    /// Reports a process with this id before its submitter queues it, with the id of its parent or
    /// 0.
    #[inline(always)]
    fn spawned(
        &self,
        _id: u64,
        _process: &Self::Process,
        _parent: u64,
        _of: impl Fn() -> &'static str + Copy,
    ) {
    }

    /// Reports a process that was waiting, or was about to wait, before the owner of the run token
    /// queues the process.
    #[inline(always)]
    fn woken(&self, _id: u64, _process: &Self::Process, _wakes: Wakes) {}

    /// Reports the begin of a turn, by the owner of the run token.
    #[inline(always)]
    fn turn_begins(&self, _process: &Self::Process) {}

    /// Reports a step, before the owner of the run token runs it, with this many new events, among
    /// the items out of the mailbox. The closures return the number of new system events before
    /// these, these events one by one, the number of left events, the worker, and the process's
    /// type.
    #[inline(always)]
    fn step_begins(
        &self,
        _id: u64,
        _process: &Self::Process,
        (_events, _system, _each): (
            usize,
            impl Fn() -> usize + Copy,
            impl Fn(&mut dyn FnMut(&Event)) + Copy,
        ),
        _waiting: impl Fn() -> usize + Copy,
        _worker: impl Fn() -> Option<usize> + Copy,
        _of: impl Fn() -> &'static str + Copy,
    ) {
    }

    /// Reports the end of a turn, before the fate of the process is settled.
    #[inline(always)]
    fn turn_ends(&self, _process: &Self::Process) {}

    /// Reports the end of a turn as [`turn_ends`](Self::turn_ends) does, with the likely fate of
    /// the process, and the items out of the mailbox that still wait, where the process has not
    /// ended. The closures are as for [`step_begins`](Self::step_begins).
    #[inline(always)]
    fn turn_over(
        &self,
        _id: u64,
        _process: &Self::Process,
        _next: Next,
        _waiting: impl Fn() -> usize + Copy,
        _worker: impl Fn() -> Option<usize> + Copy,
        _of: impl Fn() -> &'static str + Copy,
    ) {
    }

    /// Reports the events of a step, before the step. The closure returns the process's type.
    #[inline(always)]
    fn shown(
        &self,
        _pid: Pid,
        _method: Symbol,
        _of: impl Fn() -> &'static str + Copy,
        _events: &impl EventQueue,
    ) {
    }

    /// Reports the events left by a step, after the step.
    #[inline(always)]
    fn stepped(&self, _pid: Pid, _left: &impl EventQueue) {}

    /// Reports a message that could have been taken back, when it is the next in a step, or is
    /// dropped.
    #[inline(always)]
    fn arrived_next(&self, _pid: Pid, _event: &Event) {}

    /// Reports a signal after it has been asked. The process is shown this notice in its place.
    #[inline(always)]
    fn signalled(&self, _pid: Pid, _notice: Option<&Event>) {}

    /// Reports a request for an upgrade, taken from the mailbox.
    #[inline(always)]
    fn upgrading(&self, _pid: Pid) {}

    /// Reports the process when another process has taken its place.
    #[inline(always)]
    fn upgraded(&self, _pid: Pid) {}

    /// Reports the process before its `close` is called.
    #[inline(always)]
    fn closing(&self, _pid: Pid) {}

    /// Reports items never to be seen by a step, before they are dropped with the process.
    #[inline(always)]
    fn dropping<'a>(&self, _pid: Pid, _items: impl Iterator<Item = Arrival<'a>> + Clone) {}

    /// Reports the process when it is closed and dropped, and its PID is about to be free.
    #[inline(always)]
    fn ended(&self, _pid: Pid, _method: Symbol, _reason: &ExitReason) {}

    /// Reports the process when all is over; `is_told` says whether the handle knows the exit
    /// reason, or is gone.
    #[inline(always)]
    fn told(&self, _pid: Pid, _is_told: impl Fn() -> bool + Copy) {}

    // Messages and commands.

    /// Reports the items of a sender, before it puts them into a mailbox.
    #[inline(always)]
    fn sending<'a>(&self, _items: impl Iterator<Item = Arrival<'a>> + Clone) -> Self::Sent {
        Self::Sent::default()
    }

    /// Reports a sender whose items the mailbox has accepted.
    #[inline(always)]
    fn accepted(&self, _pid: Pid, _sent: Self::Sent) {}

    /// Reports the items of a sender, before it puts them into the mailbox of a process that does
    /// not wait, and may have ended.
    #[inline(always)]
    fn putting<'a>(
        &self,
        _id: u64,
        _process: &Self::Process,
        _items: impl Iterator<Item = Arrival<'a>> + Clone,
    ) {
    }

    /// Reports a sender when it has put this many items into the mailbox of a process that does not
    /// wait.
    #[inline(always)]
    fn put_behind(&self, _process: &Self::Process, _items: usize) {}

    /// Reports a sender with the run token, before it puts this many items to the front for the
    /// next step.
    #[inline(always)]
    fn put_first<'a>(
        &self,
        _id: u64,
        _process: &Self::Process,
        _items: usize,
        _seen: impl Iterator<Item = Arrival<'a>> + Clone,
    ) {
    }

    /// Reports this many items, taken out of the mailbox by the owner of the run token.
    #[inline(always)]
    fn received(&self, _process: &Self::Process, _items: usize) {}

    /// Reports the command of a yield, before the worker hands it to its handler.
    #[inline(always)]
    fn yielded(&self, _pid: Pid, _command: CommandId, _tag: Tag, _token: u64) {}

    /// Reports a process of the worker when it takes back its yields with this tag.
    #[inline(always)]
    fn revoked(&self, _pid: Pid, _tag: Tag) {}

    /// Reports a completer when it is used or dropped, or when its handler has failed without an
    /// answer.
    #[inline(always)]
    fn answered(&self) {}

    /// Reports an answer put behind the arrived items, without the mailbox.
    #[inline(always)]
    fn answered_inline(&self, _pid: Pid, _tag: Tag, _token: u64) {}

    /// Reports an answer that comes after the end of its process.
    #[inline(always)]
    fn answer_refused(&self) {}

    // Between two of these.

    /// Lets other threads act with effects here: within a submit, before and after a step, and at
    /// the end of a process. The simulation has them act.
    #[inline(always)]
    fn interleave(&self, _scheduler: &dyn Scheduler) {}

    /// Reports a call of a process's context, of a scheduler's handle, or of an address, when it
    /// has acted and is about to return. In a step, or in `init`, other threads may act here, as in
    /// [`interleave`](Self::interleave).
    #[inline(always)]
    fn called(&self, _scheduler: &dyn Scheduler, _call: &'static str) {}
}

/// None.
impl Probe for () {
    type Process = ();
    type Sent = ();
    type Observed = ();
    type Guard<'a> = ();

    fn new(_: &Config, _: usize) -> Self {}

    fn process(&self) {}
}
