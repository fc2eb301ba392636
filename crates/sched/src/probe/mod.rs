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

/// A scheduler, for a probe that looks at the whole of it. `runtime` alone implements it.
pub(crate) trait Scheduler: Any {}

/// The queue into which a process is pushed.
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

    /// Tells that a worker is about to look for a process, or to queue the process just run. Until
    /// [`settled`](Self::settled) the worker may owe a sleeper a wake-up.
    #[inline(always)]
    fn looking(&self, _worker: usize) {}

    /// Tells that a worker has woken the owed sleepers.
    #[inline(always)]
    fn settled(&self, _worker: usize) {}

    /// Tells that a worker has announced its sleep and looked again, and is about to block. It is
    /// settled.
    #[inline(always)]
    fn falling_asleep(&self, _worker: usize, _scheduler: &dyn Scheduler) {}

    /// Tells that a thread is about to push a process and to look for a sleeper to wake; `worker`
    /// returns the thread's worker. The guard is dropped after the look.
    #[inline(always)]
    fn waking(&self, _worker: impl Fn() -> Option<usize> + Copy) -> Self::Guard<'_> {
        Self::Guard::default()
    }

    /// Tells that a thread is about to push a process behind as many others as `before` returns.
    /// The guard is dropped after the push. Another worker may have taken the process by then.
    #[inline(always)]
    fn pushing(
        &self,
        _process: &Self::Process,
        _push: Push,
        _before: impl Fn() -> usize + Copy,
    ) -> Self::Guard<'_> {
        Self::Guard::default()
    }

    /// Tells that a worker has taken a process from a queue to run it.
    #[inline(always)]
    fn picked(&self, _worker: usize, _process: &Self::Process) {}

    /// Observes the victim, before a thief tries to take its processes.
    #[inline(always)]
    fn observe(&self, _victim: usize) -> Self::Observed {
        Self::Observed::default()
    }

    /// Tells that a thief has taken `count` processes of the victim, which it has observed before.
    #[inline(always)]
    fn stole(
        &self,
        _thief: usize,
        (_victim, _count): (usize, usize),
        _observed: Self::Observed,
        _theft: Theft,
    ) {
    }

    /// Tells that the monitor is about to look at the workers, or to sleep.
    #[inline(always)]
    fn watching(&self) {}

    /// Tells that the monitor has looked at the workers.
    #[inline(always)]
    fn watched(&self) {}

    /// Tells that the monitor is about to block until something waits.
    #[inline(always)]
    fn dozing(&self) {}

    /// Tells that a worker has begun to look for a process, or has found none at its first look.
    #[inline(always)]
    fn searching(&self, _worker: usize) {}

    /// Tells that a worker has found a process after [`searching`](Self::searching).
    #[inline(always)]
    fn found(&self, _worker: usize) {}

    /// Tells that a worker is about to block.
    #[inline(always)]
    fn sleeping(&self, _worker: usize) {}

    /// Tells that a worker has been asleep.
    #[inline(always)]
    fn awake(&self, _worker: usize) {}

    /// Tells that a thread ceases to be this worker, for good or for the moment.
    #[inline(always)]
    fn retiring(&self, _worker: usize) {}

    /// Tells that a worker has taken a process from elsewhere than its own deque, to run it.
    #[inline(always)]
    fn taking(&self, _worker: usize, _from: From) {}

    /// Tells that a thread has had a spare take the place of the worker.
    #[inline(always)]
    fn replaced(&self, _worker: usize) {}

    /// Tells that a thread is about to fire the timers of a shard; `late` returns the lateness of
    /// the earliest in nanoseconds.
    #[inline(always)]
    fn firing(&self, _worker: impl Fn() -> Option<usize> + Copy, _late: impl Fn() -> u64 + Copy) {}

    // The life of a process.

    /// Tells that `init` has returned `Ok`, to a submitter or to a worker that upgrades.
    #[inline(always)]
    fn initialised(&self, _pid: Pid) {}

    /// Tells that a submitter does not start the process after all. It may not have been
    /// initialised.
    #[inline(always)]
    fn withdrawn(&self, _pid: Pid) {}

    /// Tells that a submitter is about to let other threads know of the process, which has this id.
    /// `parent` calls its argument with the parent, if it lives.
    #[inline(always)]
    fn born(
        &self,
        _id: u64,
        _process: &Self::Process,
        _parent: impl Fn(&mut dyn FnMut(&Self::Process)) + Copy,
    ) {
    }

    /// Tells that a process, or its parent, sets the label for its account.
    #[inline(always)]
    fn labelled(&self, _process: &Self::Process, _label: &str) {}

    /// Returns the label of a process, where a probe keeps it.
    #[inline(always)]
    fn label_of(&self, _process: &Self::Process) -> Option<Arc<str>> {
        None
    }

    /// Tells that the owner of the run token is about to queue a new process, or a waiting process
    /// woken without an event.
    #[inline(always)]
    fn readied(&self, _process: &Self::Process) {}

    /// Tells that a submitter is about to queue a process with this id, and the id of its parent or
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

    /// Tells that the owner of the run token is about to queue a process that was waiting, or was
    /// about to wait.
    #[inline(always)]
    fn woken(&self, _id: u64, _process: &Self::Process, _wakes: Wakes) {}

    /// Tells that the owner of the run token begins a turn.
    #[inline(always)]
    fn turn_begins(&self, _process: &Self::Process) {}

    /// Tells that the owner of the run token is about to run a step with this many new events,
    /// among the items out of the mailbox. The closures return the number of new system events
    /// before these, these events one by one, the number of left events, the worker, and the
    /// process's type.
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

    /// Tells that the turn is over except for the fate of the process.
    #[inline(always)]
    fn turn_ends(&self, _process: &Self::Process) {}

    /// Tells of the end of a turn as [`turn_ends`](Self::turn_ends) does, with the likely fate of
    /// the process, and the items out of the mailbox that still wait, where the process has not
    /// ended. The closures are those of [`step_begins`](Self::step_begins).
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

    /// Tells that a step is about to be shown these events. The closure returns the process's type.
    #[inline(always)]
    fn shown(
        &self,
        _pid: Pid,
        _method: Symbol,
        _of: impl Fn() -> &'static str + Copy,
        _events: &impl EventQueue,
    ) {
    }

    /// Tells that a step is over and has left these events.
    #[inline(always)]
    fn stepped(&self, _pid: Pid, _left: &impl EventQueue) {}

    /// Tells that a message that could have been taken back is the next in a step, or is dropped.
    #[inline(always)]
    fn arrived_next(&self, _pid: Pid, _event: &Event) {}

    /// Tells that a signal has been asked. The process is shown this notice in its place.
    #[inline(always)]
    fn signalled(&self, _pid: Pid, _notice: Option<&Event>) {}

    /// Tells that a request for an upgrade has been taken from the mailbox.
    #[inline(always)]
    fn upgrading(&self, _pid: Pid) {}

    /// Tells that another process has taken this process's place.
    #[inline(always)]
    fn upgraded(&self, _pid: Pid) {}

    /// Tells that `close` is about to be called.
    #[inline(always)]
    fn closing(&self, _pid: Pid) {}

    /// Items that no step will see, before they are dropped with the process.
    #[inline(always)]
    fn dropping<'a>(&self, _pid: Pid, _items: impl Iterator<Item = Arrival<'a>> + Clone) {}

    /// Tells that the process is closed and dropped, and that its PID is about to be free.
    #[inline(always)]
    fn ended(&self, _pid: Pid, _method: Symbol, _reason: &ExitReason) {}

    /// Tells that all is over; `is_told` says whether the handle knows the exit reason, or is gone.
    #[inline(always)]
    fn told(&self, _pid: Pid, _is_told: impl Fn() -> bool + Copy) {}

    // Messages and commands.

    /// Tells that a sender is about to put these items into a mailbox.
    #[inline(always)]
    fn sending<'a>(&self, _items: impl Iterator<Item = Arrival<'a>> + Clone) -> Self::Sent {
        Self::Sent::default()
    }

    /// Tells that the mailbox has accepted a sender's items.
    #[inline(always)]
    fn accepted(&self, _pid: Pid, _sent: Self::Sent) {}

    /// Tells that a sender is about to put these items into the mailbox of a process that does not
    /// wait, and may have ended.
    #[inline(always)]
    fn putting<'a>(
        &self,
        _id: u64,
        _process: &Self::Process,
        _items: impl Iterator<Item = Arrival<'a>> + Clone,
    ) {
    }

    /// Tells that a sender has put this many items into the mailbox of a process that does not
    /// wait.
    #[inline(always)]
    fn put_behind(&self, _process: &Self::Process, _items: usize) {}

    /// Tells that a sender with the run token is about to put this many items to the front for the
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

    /// Tells that the owner of the run token has taken this many items out of the mailbox.
    #[inline(always)]
    fn received(&self, _process: &Self::Process, _items: usize) {}

    /// Tells that a worker is about to hand the command of a yield to its handler.
    #[inline(always)]
    fn yielded(&self, _pid: Pid, _command: CommandId, _tag: Tag, _token: u64) {}

    /// Tells that a worker's process takes back its yields with this tag.
    #[inline(always)]
    fn revoked(&self, _pid: Pid, _tag: Tag) {}

    /// Tells that a completer is used or dropped, or that its handler has failed without a
    /// completion.
    #[inline(always)]
    fn answered(&self) {}

    /// Tells that the answer is put behind the arrived items, without the mailbox.
    #[inline(always)]
    fn answered_inline(&self, _pid: Pid, _tag: Tag, _token: u64) {}

    /// Tells that the answer comes after the end of its process.
    #[inline(always)]
    fn answer_refused(&self) {}

    // Between two of these.

    /// Lets other threads act with effects here: within a submit, before and after a step, and at
    /// the end of a process. The simulation has them act.
    #[inline(always)]
    fn interleave(&self, _scheduler: &dyn Scheduler) {}

    /// Tells that a call of a process's context, of a scheduler's handle, or of an address has
    /// acted, and is about to return. In a step, or in `init`, this is such a place too.
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
