//! Gives processes their turns, and parks, queues or ends them afterwards.

use super::Turn;
use super::steps::TurnEnd;
use crate::base::contain::{contain, discard, discard_each};
use crate::base::stats::Counters;
use crate::handlers::commands::OwnHandlers;
use crate::probe::{Carry, Decide, Decider, Next, Probe, Wakes};
use crate::process::dropped;
use crate::process::state::{Begin, Leave};
use crate::runtime::cell::Task;
use crate::runtime::frames::{self, Frame};
use crate::runtime::local::LocalQueue;
use crate::runtime::shared::Shared;
use crate::runtime::token::Token;
use crate::runtime::turn_place::{OffWorker, OnWorker, TurnPlace};
use crate::turn::finish::{finish, go_on_with_end};
use crate::turn::intervene::{hold, intervene};
use ganger_proc_api::{ExitReason, StepOutput};
use std::mem;
use std::sync::Arc;

/// Runs processes in turn, with buffers to reuse.
pub(crate) struct Runner<'a> {
    shared: &'a Shared,
    /// The scheduler again, for a callee with a reference of its own.
    shared_arc: &'a Arc<Shared>,
    /// Set if this thread is a worker.
    on_worker: Option<OnWorker<'a>>,
    counters: &'a Counters,
    /// Steps write here; used again and again.
    out: StepOutput,
    /// Why a process has ended.
    end: Option<ExitReason>,
}

impl<'a> Runner<'a> {
    /// Creates a runner on the worker with this queue, or on another thread.
    pub(crate) fn new(shared: &'a Arc<Shared>, queue: Option<&'a LocalQueue>) -> Self {
        Self {
            shared,
            shared_arc: shared,
            on_worker: queue.map(OnWorker::new),
            counters: shared.counters.of(queue.map(|queue| queue.index)),
            out: StepOutput::new(),
            end: None,
        }
    }

    /// Gives a process its turn, after the caller has taken it from a queue.
    pub(crate) fn run(&mut self, token: Token) {
        let mut token = Some(token);
        self.contain_turns(|runner| {
            let Some(token) = token.take() else {
                return;
            };
            match runner.on_worker {
                Some(worker) => runner.turn(worker, token),
                None => runner.turn_off_worker(token),
            }
        });
    }

    /// Calls `turns`, which gives processes their turns, again after each panic in it.
    ///
    /// User code is contained where it is called. If other code panics, such as a `tracing`
    /// subscriber, its process is lost. This thread is not lost, and neither are queued processes.
    #[inline(always)]
    pub(crate) fn contain_turns(&mut self, mut turns: impl FnMut(&mut Self)) {
        while contain(|| turns(self)).is_err() {
            self.start_afresh();
        }
    }

    #[cold]
    fn start_afresh(&mut self) {
        let counters = self.counters;
        counters.panics.bump();
        if let Some(worker) = self.on_worker {
            worker.end_turn();
        }
        // Each in a call of its own: a second panic while the first unwinds ends the program.
        let mut out = mem::take(&mut self.out);
        discard_each(None, counters, out.drain_yields());
        discard(None, counters, out.take_outcome());
        discard(None, counters, self.end.take());
    }

    #[cold]
    #[inline(never)]
    fn turn_off_worker(&mut self, token: Token) {
        frames::within(self.shared, Frame::Turn, || {
            let handlers = OwnHandlers::default();
            let place = OffWorker {
                shared: self.shared,
                handlers: &handlers,
            };
            self.turn(place, token);
            handlers.leave(self.counters);
        });
    }

    /// Runs the process as [`run`](Self::run) does, within [`contain_turns`](Self::contain_turns).
    ///
    /// Compiled for workers, and again for other threads, so a worker does not check at each turn
    /// whether it is a worker. Inlined into the calling loop: a call saves registers and prepares
    /// for a panic, which slows a short step.
    #[inline(always)]
    pub(crate) fn turn<'b>(&mut self, place: impl TurnPlace<'b>, token: Token) {
        let task = token.into_task();
        let (shared, arc, counters) = (self.shared, self.shared_arc, self.counters);
        shared.probe.turn_begins(&task.probe);
        let _traced = shared.carrier().turn();
        place.count(&counters.turns);
        // Turns are nested in the simulation, and on threads other than workers.
        let _dropped = if place.queue().is_none() || Decider::is_driven() {
            dropped::open()
        } else {
            dropped::open_first()
        };
        let guard = place.begin(task.pid());
        let begin = match task.state.begin() {
            Begin::Intervene => intervene(shared, &task, counters),
            begin => begin,
        };
        let ends = match begin {
            // The process has ended, and its end goes on.
            Begin::Terminate if task.state.is_closed() => TurnEnd::Goes,
            Begin::Terminate => {
                self.end = Some(ExitReason::Terminated);
                TurnEnd::End
            }
            Begin::Stand => TurnEnd::Suspended,
            Begin::Step | Begin::Intervene => {
                let turn = Turn {
                    shared,
                    place,
                    task: &task,
                    // SAFETY: the process came from a queue, which handed its run token over, and
                    // `begin` has moved it to `Running`, which is left below. Code inside reaches
                    // the process through its context, mailbox and state only.
                    core: unsafe { task.core().as_mut() },
                    counters,
                    end: &mut self.end,
                };
                turn.run(&mut self.out)
            }
        };
        shared.probe.turn_ends(&task.probe);
        let worker = || place.queue().map(|queue| queue.index);
        // SAFETY: this thread owns the run token; the turn is over, and its reference to the core
        // is gone.
        let waiting = || unsafe { task.with_core(|core| core.waiting()) };
        let of = || task.about.type_name();
        let next = match ends {
            TurnEnd::Wait(_) | TurnEnd::Suspended => Next::Waits,
            TurnEnd::Ready | TurnEnd::GivesWay => Next::Queued,
            TurnEnd::End | TurnEnd::Goes => Next::Ends,
        };
        (shared.probe).turn_over(task.id, &task.probe, next, waiting, worker, of);
        let end = &mut self.end;
        let end_turn = move || place.end(guard);
        let leave = match ends {
            TurnEnd::End => Leave::Terminate,
            TurnEnd::Goes => {
                return go_on_with_end(shared, counters, &task, end, place.queue(), end_turn);
            }
            TurnEnd::Wait(_) | TurnEnd::Ready | TurnEnd::GivesWay | TurnEnd::Suspended => {
                end_if_over(shared, &task);
                match ends {
                    TurnEnd::Wait(waiting) => {
                        let leave = task.state.park(waiting);
                        if let Leave::Requeue | Leave::RequeueUrgent = leave {
                            (shared.probe).woken(task.id, &task.probe, Wakes::LastMoment);
                        }
                        leave
                    }
                    TurnEnd::Suspended => hold(shared, &task),
                    _ => task.state.requeue(),
                }
            }
        };
        match leave {
            Leave::Parked => {}
            Leave::Requeue if ends == TurnEnd::GivesWay => {
                // SAFETY: the process has not been parked: this thread still owns the token.
                arc.requeue_last(place.queue(), unsafe { Token::new(&task) });
            }
            // SAFETY: the process has not been parked: this thread still owns the token.
            Leave::Requeue => arc.requeue(place.queue(), unsafe { Token::new(&task) }),
            // SAFETY: the process has not been parked: this thread still owns the token.
            Leave::RequeueUrgent => arc.requeue_urgent(unsafe { Token::new(&task) }),
            Leave::Terminate => {
                return finish(shared, counters, &task, end, place.queue(), end_turn);
            }
        }
        end_turn();
    }
}

/// Terminates the process when the shutdown is over. After a halt, no worker gives it another turn.
/// After the deadline, it must take no turn, even before the terminator of all
/// processes reaches it.
fn end_if_over(shared: &Shared, task: &Task) {
    if shared.shutdown.is_over() {
        task.terminate();
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
