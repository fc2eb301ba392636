//! What a turn consists of: steps, with what comes before and after each.
//!
//! **The frequent way is straight.** A turn is tens of nanoseconds, and what its code does beside the work shows: a value
//! that lives on beyond a call is stored and loaded, a branch that joins the others again keeps their values alive, and
//! what must be dropped should a call panic is kept in memory. So all that is rare is a function of its own, which the
//! frequent way ends in or has no value across, and all that is frequent is inlined into one.

use crate::Task;
use crate::contain::{contain, discard, discard_each};
use crate::core::{Core, Gathered};
use crate::dispatch::dispatch;
use crate::shared::Shared;
use crate::shown::Shown;
use crate::state::Waiting;
use crate::stats::Counters;
use crate::turns::Turning;
use crate::upgrade::upgrade;
use ganger_proc_api::{ExitReason, Outcome, StepOutput, UpgradeRequest};
use std::mem;

/// What turns use again.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) out: StepOutput,
    /// So many of what is pending are answers that have come before their handlers returned, since the last step.
    answers: usize,
    /// Why the process has ended, after [`Turn::End`].
    pub(super) end: Option<ExitReason>,
}

/// How many steps a turn has at the most, when all but the first are about completions of handlers
/// that have answered before they returned, and nothing waits in the worker's deque.
const INLINE_STEPS: u32 = 16;

/// What a turn ends with. Small, because a value that goes through memory just after it was written, in
/// larger pieces than it was written in, costs as much as all the rest of a short step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The process is ready again.
    Ready,
    /// It would wait, but events are left that its step was not shown.
    Behind,
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
    /// Runs the process, whose run token this thread owns, for a turn: one step, and more of them as long as its handlers
    /// answer at once and nothing else happens.
    #[inline(always)]
    pub(super) fn turn(
        &mut self,
        shared: &Shared,
        place: impl Turning,
        task: &Task,
        core: &mut Core,
        counters: &Counters,
    ) -> Turn {
        let must_end =
            move || place.keeps_waiting() || task.state.must_leave() || shared.shutdown.is_halted();
        core.receive(&task.state);
        let mut steps = 1;
        loop {
            match self.advance(shared, place, task, core, counters) {
                Stepped::Waits if core.pending.is_empty() => return wait(core),
                Stepped::Waits => {}
                Stepped::Ready => return Turn::Ready,
                Stepped::End => return Turn::End,
            }
            if core.pending.len() > self.answers {
                return Turn::Behind;
            }
            if steps == INLINE_STEPS || must_end() {
                return Turn::Ready;
            }
            steps += 1;
        }
    }

    /// Gathers events, steps the process if there is something for it, and applies the outcome.
    #[inline(always)]
    fn advance(
        &mut self,
        shared: &Shared,
        place: impl Turning,
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
            shared.accounts.take_upgrade(task.pid);
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
    fn step(
        &mut self,
        shared: &Shared,
        place: impl Turning,
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
        shared.accounts.show(task.pid, &shown);
        #[cfg(feature = "sim")]
        crate::sim::begin_step(task, &shown);
        let stepped = contain(|| {
            #[cfg(feature = "sim")]
            crate::sim::before_step();
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
        #[cfg(feature = "sim")]
        crate::sim::moment(&task.shared);
        self.answers = dispatch(place, task, core, out, counters);
        true
    }

    /// The step has failed, or has panicked.
    #[cold]
    #[inline(never)]
    fn fail(
        &mut self,
        place: impl Turning,
        task: &Task,
        core: &mut Core,
        left: usize,
        reason: ExitReason,
        counters: &Counters,
    ) {
        core.keep(left);
        #[cfg(feature = "sim")]
        crate::sim::moment(&task.shared);
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

/// The step is over: gives back what it has taken. Returns how many of its events are left that are not aside.
#[inline(always)]
fn end_step(shared: &Shared, task: &Task, shown: &mut Shown<'_>) -> usize {
    let is_limited = shared.config.mailbox_limit.is_some();
    if is_limited {
        shown.count();
    }
    let left = shown.settle();
    shared.accounts.settle(task.pid, shown);
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
