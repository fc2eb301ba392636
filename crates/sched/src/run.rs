//! One turn of one process: gather its events, step it, dispatch what it yielded, apply the outcome.

mod catch_up;

use self::catch_up::CatchUp;
use crate::Task;
use crate::contain::{contain, discard, discard_each};
use crate::core::{Core, Gathered, Shown};
use crate::dispatch::{Inline, dispatch};
use crate::finish::finish;
use crate::local::LocalQueue;
use crate::shared::Shared;
use crate::state::{Begin, Leave, Waiting};
use crate::stats::Counters;
use crate::token::Token;
use crate::turns::{InTurn, Seat};
use crate::upgrade::upgrade;
use ganger_proc_api::{Events, ExitReason, Outcome, StepOutput};
use std::mem;
use std::sync::Arc;

/// Runs processes, one at a time, with buffers that it reuses.
pub(crate) struct Runner<'a> {
    shared: &'a Arc<Shared>,
    /// Of the worker that this thread is, if so.
    seat: Option<Seat<'a>>,
    counters: &'a Counters,
    buffers: Buffers,
    catch_up: CatchUp,
}

#[derive(Default)]
struct Buffers {
    out: StepOutput,
    inline: Inline,
    /// Why the process has ended, after [`Turn::End`].
    end: Option<ExitReason>,
}

/// How many steps a turn has at the most, when all but the first are about completions of handlers
/// that have answered before they returned, and nothing waits in the worker's deque.
const INLINE_STEPS: u32 = 16;

/// What a turn ends with. Small, because a value that goes through memory just after it was written, in
/// larger pieces than it was written in, costs as much as all the rest of a short step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The process is ready again.
    Ready,
    /// It would wait, but events are left that its step was not shown.
    Behind,
    /// Handlers have answered before they returned, and nothing else waits for the process.
    Answered,
    /// It waits for an event.
    Wait(Waiting),
    /// It has ended, for the reason in the buffers.
    End,
}

impl<'a> Runner<'a> {
    /// A runner on the thread of the worker that has the queue, or on one that is no worker.
    pub(crate) fn new(shared: &'a Arc<Shared>, queue: Option<&'a LocalQueue>) -> Self {
        Self {
            shared,
            seat: queue.map(Seat::new),
            counters: shared.counters.of(queue.map(|queue| queue.index)),
            buffers: Buffers::default(),
            catch_up: CatchUp::default(),
        }
    }

    /// Gives a process that has been taken from a queue its turn.
    ///
    /// Users' code is contained where it is called. Should something else panic, a `tracing` subscriber say,
    /// then its process is lost, and this thread is not, nor what is queued.
    #[inline]
    pub(crate) fn run(&mut self, token: Token) {
        if contain(|| self.run_through(token)).is_err() {
            self.start_afresh();
        }
    }

    #[cold]
    fn start_afresh(&mut self) {
        let counters = self.counters;
        counters.panics.bump();
        self.catch_up = CatchUp::default();
        // Each alone: a second panic on the way out of one would end the program.
        let Buffers {
            mut out,
            inline,
            end,
        } = mem::take(&mut self.buffers);
        discard_each(None, counters, out.drain_yields());
        discard(None, counters, out.take_outcome());
        discard(None, counters, inline);
        discard(None, counters, end);
    }

    fn run_through(&mut self, token: Token) {
        let task = token.into_task();
        task.check.begin();
        let Self {
            shared,
            seat,
            counters,
            buffers,
            ..
        } = self;
        let queue = seat.map(|seat| seat.queue);
        #[cfg(not(feature = "sim"))]
        counters.turns.bump();
        #[cfg(feature = "sim")]
        if !crate::sim::has_begun() {
            counters.turns.bump();
        }
        let turn = InTurn::begin(shared, *seat, task.pid);
        let ends = match task.state.begin() {
            Begin::Terminate => buffers.end(ExitReason::Terminated),
            // SAFETY: the process came from a queue, which handed its run token over, and `begin`
            // has moved it to `Running`, which is left below. What runs inside reaches the process
            // through its context, mailbox and state only.
            Begin::Step => unsafe {
                task.with_core(|core| buffers.turn(shared, queue, &task, core, counters))
            },
        };
        if ends != Turn::End && shared.shutdown.is_halted() {
            // Nobody would give it another turn.
            task.terminate();
        }
        task.check.end();
        let worker = || queue.map(|queue| queue.index);
        let leave = match ends {
            Turn::Ready | Turn::Answered => task.state.requeue(),
            Turn::Wait(waiting) => task.state.park(waiting),
            Turn::Behind => match task.state.requeue() {
                Leave::Requeue => {
                    turn.end();
                    // SAFETY: the process has not been parked: this thread still owns the token.
                    return self.catch_up(unsafe { Token::new(&task) });
                }
                leave => leave,
            },
            Turn::End => {
                return finish(shared, counters, &task, &mut buffers.end, turn, worker());
            }
        };
        match leave {
            Leave::Parked => {}
            // SAFETY: the process has not been parked: this thread still owns the token.
            Leave::Requeue => shared.requeue(queue, unsafe { Token::new(&task) }),
            // SAFETY: as above.
            Leave::RequeueUrgent => shared.requeue_urgent(unsafe { Token::new(&task) }),
            Leave::Terminate => {
                return finish(shared, counters, &task, &mut buffers.end, turn, worker());
            }
        }
        turn.end();
    }
}

impl Buffers {
    fn turn(
        &mut self,
        shared: &Shared,
        queue: Option<&LocalQueue>,
        task: &Task,
        core: &mut Core,
        counters: &Counters,
    ) -> Turn {
        core.receive(&task.state);
        let must_end = || {
            let others_wait = queue.is_some_and(|queue| !queue.deque.is_empty());
            others_wait || task.state.must_leave() || shared.shutdown.is_halted()
        };
        let mut steps = 1;
        let turn = loop {
            match self.advance(shared, task, core, counters) {
                Turn::Answered if steps < INLINE_STEPS && !must_end() => steps += 1,
                turn => break turn,
            }
        };
        self.inline.end(core);
        if let (Turn::Wait(_), Some(process)) = (turn, &mut core.process) {
            process.wait();
        }
        turn
    }

    /// Gathers events, steps the process if there is something for it, and applies the outcome.
    fn advance(
        &mut self,
        shared: &Shared,
        task: &Task,
        core: &mut Core,
        counters: &Counters,
    ) -> Turn {
        let limit = shared.config.event_batch;
        self.inline.answers = 0;
        let events = loop {
            match core.gather(&task.state, limit, &mut self.inline, counters) {
                Gathered::Nothing => return self.waiting(core),
                Gathered::Step(events) => break events,
                Gathered::Upgrade(request) => {
                    shared.accounts.take_upgrade(task.pid);
                    if let Err(error) = upgrade(shared, task, core, *request, counters) {
                        return self.end(ExitReason::UpgradeFailed(error));
                    }
                    if task.state.is_terminating() {
                        return self.end(ExitReason::Terminated);
                    }
                }
            }
        };
        if let Err(reason) = self.step(shared, task, core, events, counters) {
            // Whatever a panic left in it is not for the next process to see.
            let mut out = mem::take(&mut self.out);
            discard_each(task.pid, counters, out.drain_yields());
            discard(task.pid, counters, out.take_outcome());
            return self.end(reason);
        }
        match self.out.outcome() {
            Outcome::Idle | Outcome::WaitForYields => {
                self.out.go_on();
                self.waiting(core)
            }
            Outcome::Done(_) | Outcome::Upgrade(_) => self.leave(shared, task, core, counters),
            // `Continue`, and whatever the vocabulary may add: step again.
            _ => {
                core.must_step = true;
                Turn::Ready
            }
        }
    }

    /// Applies an outcome after which the process is not the same any more.
    #[cold]
    #[inline(never)]
    fn leave(
        &mut self,
        shared: &Shared,
        task: &Task,
        core: &mut Core,
        counters: &Counters,
    ) -> Turn {
        match self.out.take_outcome() {
            Outcome::Done(result) => self.end(ExitReason::Done(result)),
            Outcome::Upgrade(request) => {
                self.inline.put_back(core);
                match upgrade(shared, task, core, *request, counters) {
                    Ok(()) => Turn::Ready,
                    Err(error) => self.end(ExitReason::UpgradeFailed(error)),
                }
            }
            _ => Turn::Ready,
        }
    }

    fn end(&mut self, reason: ExitReason) -> Turn {
        self.end = Some(reason);
        Turn::End
    }

    /// One step, and the dispatch of what it yielded.
    fn step(
        &mut self,
        shared: &Shared,
        task: &Task,
        core: &mut Core,
        events: usize,
        counters: &Counters,
    ) -> Result<(), ExitReason> {
        counters.steps.bump();
        let Self { out, inline, .. } = self;
        let Some((process, mut shown)) = core.shown(&mut inline.place, events) else {
            // Only a completed process has none, and a completed process is not queued.
            return Err(ExitReason::Terminated);
        };
        shared.accounts.show(task.pid, &shown);
        #[cfg(feature = "sim")]
        crate::sim::begin_step(task, &shown);
        let stepped = contain(|| {
            #[cfg(feature = "sim")]
            crate::sim::before_step();
            process.step(&mut Events::new(&mut shown), out)
        });
        shown.settle();
        shared.accounts.settle(task.pid, &shown);
        let Shown { events, places, .. } = shown;
        if shared.config.mailbox_limit.is_some() {
            task.release_messages(places);
        }
        core.keep(&mut inline.place, events);
        #[cfg(feature = "sim")]
        crate::sim::moment(&task.shared);
        match stepped {
            Ok(result) => {
                dispatch(task, core, out, inline, counters);
                result.map_err(ExitReason::Failed)
            }
            Err(message) => {
                counters.panics.bump();
                Err(ExitReason::Panicked(message))
            }
        }
    }

    /// How a process waits that has nothing to do; it has when something is pending.
    fn waiting(&self, core: &Core) -> Turn {
        if self.inline.place.is_full() || !core.pending.is_empty() {
            if core.pending.len() == self.inline.answers {
                Turn::Answered
            } else {
                Turn::Behind
            }
        } else if core.has_system() {
            Turn::Ready
        } else if core.yields.is_empty() {
            Turn::Wait(Waiting::Idle)
        } else {
            Turn::Wait(Waiting::Blocked)
        }
    }
}
