//! What a turn consists of: steps, with what comes before and after each.
//!
//! **The frequent way is straight.** A turn is short, so all that its code does beside the work
//! shows. A value that lives on beyond a call is stored and loaded. A branch that joins the others
//! again keeps their values alive. What must be dropped after a panic is kept in memory. So each
//! rare thing is a function of its own. The frequent way ends in it, or has no value across it. All
//! that is frequent is inlined into one.

use crate::base::clock::Deadline;
use crate::base::contain::{contain, discard, discard_each};
use crate::base::stats::Counters;
use crate::core::cell::Task;
use crate::core::local::LocalQueue;
use crate::core::owned::{Core, Gathered};
use crate::core::shared::Shared;
use crate::core::shown::Shown;
use crate::core::turns::Turning;
use crate::probe::{Decide, Decider, Probe};
use crate::process::state::Waiting;
use crate::turn::dispatch::dispatch;
use crate::turn::upgrade::upgrade;
use ganger_proc_api::{ExitReason, Outcome, StepOutput, UpgradeRequest};
use std::mem;
use std::time::Duration;

/// What turns use again.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) out: StepOutput,
    /// How many of the pending items are answers that came before their handlers returned, since
    /// the last step.
    answers: usize,
    /// Why the process has ended, after [`Turn::End`].
    pub(super) end: Option<ExitReason>,
}

/// How many steps a turn has at the most, when all but the first are about completions of handlers
/// that have answered before they returned, and nothing waits in the worker's deque.
const INLINE_STEPS: u32 = 16;

/// How many batches of events are left when a pick begins whose process is far behind.
const FAR: usize = 3;

/// How many turns a process has in a pick at the most, when it is far behind.
const TURNS: u32 = 64;

/// So long after its pick a process begins no further turn.
const CATCH_UP: Duration = Duration::from_micros(100);

/// What a turn ends with. Small, because a value is slow to read from memory in larger pieces than
/// it was just written in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The process is ready again.
    Ready,
    /// It waits for an event.
    Wait(Waiting),
    /// It has ended, for the reason in the buffers.
    End,
}

/// What a step comes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stepped {
    /// The process is to step again.
    Ready,
    /// It waits if there is nothing for it.
    Waits,
    /// It has ended, for the reason in the buffers.
    End,
}

impl Buffers {
    /// Runs the process, whose run token this thread owns, for a turn: one step, and more of them
    /// as long as its handlers answer at once and nothing else happens. A process that is far
    /// behind may have several turns.
    #[inline(always)]
    pub(super) fn turn<'a>(
        &mut self,
        shared: &Shared,
        place: impl Turning<'a>,
        task: &Task,
        core: &mut Core,
        counters: &Counters,
    ) -> Turn {
        let must_end = move || {
            place.has_local_work() || task.state.must_leave() || shared.shutdown.is_halted()
        };
        let is_far_behind = core.pending.len() / FAR >= shared.config.event_batch;
        let mut catch_up = is_far_behind.then(|| CatchUp::begin(place)).flatten();
        core.receive(&task.state);
        let mut steps = 1;
        loop {
            match self.advance(shared, place, task, core, counters) {
                Stepped::Waits if core.pending.is_empty() => return wait(core),
                Stepped::Waits => {}
                Stepped::Ready => return Turn::Ready,
                Stepped::End => return Turn::End,
            }
            if core.pending.len() == self.answers {
                if steps == INLINE_STEPS || must_end() {
                    return Turn::Ready;
                }
                steps += 1;
            } else if let Some(catch_up) = &mut catch_up
                && catch_up.goes_on(core.pending.len())
                && !task.state.must_leave()
            {
                place.count(&counters.turns);
                core.receive(&task.state);
                steps = 1;
            } else {
                return Turn::Ready;
            }
        }
    }

    /// Gathers events, steps the process if there is something for it, and applies the outcome.
    #[inline(always)]
    fn advance<'a>(
        &mut self,
        shared: &Shared,
        place: impl Turning<'a>,
        task: &Task,
        core: &mut Core,
        counters: &Counters,
    ) -> Stepped {
        self.answers = 0;
        let limit = shared.config.event_batch;
        let events = match core.gather(&task.state, limit, counters) {
            Gathered::Step(events) => events,
            Gathered::Nothing => return Stepped::Waits,
            Gathered::Upgrade(request) => {
                match self.gather_behind(shared, task, core, *request, counters) {
                    Ok(events) => events,
                    Err(stepped) => return stepped,
                }
            }
        };
        if !self.step(shared, place, task, core, events, counters) {
            return Stepped::End;
        }
        if self.out.take_wait() {
            return Stepped::Waits;
        }
        if !self.out.goes_on() {
            return self.apply(shared, task, core, counters);
        }
        core.must_step = true;
        Stepped::Ready
    }

    /// Carries out upgrades, and gathers what is behind them.
    #[cold]
    #[inline(never)]
    fn gather_behind(
        &mut self,
        shared: &Shared,
        task: &Task,
        core: &mut Core,
        mut request: UpgradeRequest,
        counters: &Counters,
    ) -> Result<usize, Stepped> {
        loop {
            shared.probe.upgrading(task.pid);
            if let Err(error) = upgrade(shared, task, core, request, counters) {
                return Err(self.end(ExitReason::UpgradeFailed(error)));
            }
            if task.state.is_terminating() {
                return Err(self.end(ExitReason::Terminated));
            }
            let limit = shared.config.event_batch;
            match core.gather(&task.state, limit, counters) {
                Gathered::Nothing => return Err(Stepped::Waits),
                Gathered::Step(events) => return Ok(events),
                Gathered::Upgrade(next) => request = *next,
            }
        }
    }

    /// Applies an outcome after which the process is not the same any more.
    #[cold]
    #[inline(never)]
    fn apply(
        &mut self,
        shared: &Shared,
        task: &Task,
        core: &mut Core,
        counters: &Counters,
    ) -> Stepped {
        match self.out.take_outcome() {
            Outcome::Done(result) => self.end(ExitReason::Done(result)),
            Outcome::Upgrade(request) => match upgrade(shared, task, core, *request, counters) {
                Ok(()) => Stepped::Ready,
                Err(error) => self.end(ExitReason::UpgradeFailed(error)),
            },
            _ => Stepped::Ready,
        }
    }

    fn end(&mut self, reason: ExitReason) -> Stepped {
        self.end = Some(reason);
        Stepped::End
    }

    /// One step, and the dispatch of what it yielded. Says whether the process goes on.
    #[inline(always)]
    fn step<'a>(
        &mut self,
        shared: &Shared,
        place: impl Turning<'a>,
        task: &Task,
        core: &mut Core,
        events: usize,
        counters: &Counters,
    ) -> bool {
        place.count(&counters.steps);
        let out = &mut self.out;
        let lent = core.lend(events);
        let Some((process, mut shown)) = core.shown(&lent) else {
            // Only a completed process has none, and a completed process is not queued.
            self.end = Some(ExitReason::Terminated);
            return false;
        };
        shared.probe.shown(task.pid, task.method, &shown);
        shared.probe.interleave(&task.shared);
        let stepped = contain(|| {
            Decider::stepping();
            process.step(&mut shown.events(), out)
        });
        let failed = match stepped {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(ExitReason::Failed(error)),
            Err(message) => Some(ExitReason::Panicked(message)),
        };
        if let Some(reason) = failed {
            let left = end_failed_step(shared, task, &mut shown);
            self.fail(place, task, core, left, reason, counters);
            return false;
        }
        let left = end_step(shared, task, &mut shown);
        core.keep(left);
        shared.probe.interleave(&task.shared);
        self.answers = dispatch(place, task, core, out, counters);
        true
    }

    /// The step has failed, or has panicked.
    #[cold]
    #[inline(never)]
    fn fail<'a>(
        &mut self,
        place: impl Turning<'a>,
        task: &Task,
        core: &mut Core,
        left: usize,
        reason: ExitReason,
        counters: &Counters,
    ) {
        core.keep(left);
        task.shared.probe.interleave(&task.shared);
        if let ExitReason::Panicked(_) = reason {
            counters.panics.bump();
        } else {
            dispatch(place, task, core, &mut self.out, counters);
        }
        self.end = Some(reason);
        // Whatever a panic left in it is not for the next process to see.
        let mut out = mem::take(&mut self.out);
        discard_each(task.pid, counters, out.drain_yields());
        discard(task.pid, counters, out.take_outcome());
    }
}

/// A pick of a process that is far behind, which may have several turns.
///
/// A sender of thousands of messages has one pick for all of them. Their receiver would have one
/// pick for each batch. Between these picks others have theirs, so that the messages outgrow the
/// caches. For each further turn it is as if the worker had picked the process again, but for the
/// rotation (G4).
struct CatchUp<'a> {
    queue: &'a LocalQueue,
    until: Deadline,
    /// How many processes were in the worker's deque.
    queued: usize,
    turns: u32,
}

impl<'a> CatchUp<'a> {
    #[cold]
    #[inline(never)]
    fn begin(place: impl Turning<'a>) -> Option<Self> {
        place.queue().map(|queue| Self {
            queue,
            until: Deadline::after(CATCH_UP),
            queued: queue.deque.len(),
            turns: 1,
        })
    }

    /// Whether the process has another turn, with so many events left. Offers to others what is in
    /// the deque.
    #[cold]
    #[inline(never)]
    fn goes_on(&mut self, left: usize) -> bool {
        let Self { queue, turns, .. } = *self;
        let shared = &queue.shared;
        let has_to_look = !shared.urgent.is_empty()
            || shared.worker_slots.slot(queue.index).is_replaced()
            || shared.shutdown.is_halted()
            || shared.shutdown.is_over();
        let goes_on = left >= shared.config.event_batch
            && turns < TURNS
            && queue.deque.len() <= self.queued
            && !has_to_look
            && !self.is_over();
        if goes_on {
            self.turns += 1;
            shared.probe.looking(queue.index);
            queue.offer();
            shared.probe.settled(queue.index);
        }
        goes_on
    }

    /// Whether the pick was long ago. In a simulation no time passes in a pick.
    fn is_over(&self) -> bool {
        !Decider::is_driven() && self.until.remaining().is_zero()
    }
}

/// The step is over: gives back what it has taken. Returns how many of its events are left that are
/// not aside.
#[inline(always)]
fn end_step(shared: &Shared, task: &Task, shown: &mut Shown<'_>) -> usize {
    let is_limited = shared.config.mailbox_limit.is_some();
    if is_limited {
        shown.count();
    }
    let left = shown.settle();
    shared.probe.stepped(task.pid, shown);
    if is_limited {
        task.release_messages(shown.places);
    }
    left
}

#[cold]
#[inline(never)]
fn end_failed_step(shared: &Shared, task: &Task, shown: &mut Shown<'_>) -> usize {
    end_step(shared, task, shown)
}

/// There is nothing to do for the process but what may be in its system lane.
#[inline]
fn wait(core: &mut Core) -> Turn {
    if core.has_system() {
        return Turn::Ready;
    }
    if let Some(process) = &mut core.process {
        process.wait();
    }
    Turn::Wait(if core.yields.is_empty() {
        Waiting::Idle
    } else {
        Waiting::Blocked
    })
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
