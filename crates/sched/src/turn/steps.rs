//! The steps of a turn, with the work before and after each.
//!
//! **The frequent way is straight.** A turn is short, so every instruction around the step shows.
//! Each rare case is a function of its own: the frequent way ends with its call, or keeps no value
//! across the call. The frequent code is inlined into a single function.

use super::Turn;
use super::catch_up::CatchUp;
use crate::base::contain::{contain, contain_and_report, discard, discard_each, log};
use crate::limits::room::MESSAGE;
use crate::policy::INLINE_STEPS;
use crate::probe::{Carrier, Carry, Decide, Decider, Next, Probe, StepFacts, TracedStep};
use crate::process::dropped;
use crate::process::exit_signal::{Arrived, ExitSignal};
use crate::process::state::Waiting;
use crate::runtime::cell::Task;
use crate::runtime::item::Item;
use crate::runtime::lent_context::LentContext;
use crate::runtime::owned::{Frequent, Gathered};
use crate::runtime::shared::Shared;
use crate::runtime::step_events::StepEvents;
use crate::runtime::turn_place::TurnPlace;
use ganger_proc_api::internal::RunnerOutput as _;
use ganger_proc_api::{CommandError, Event, ExitReason, Outcome, StepOutput};
use std::mem;
use tracing::Level;

/// After this many steps in a row without an event or a command, a warning names the process.
const MANY_REPEATS: u16 = 10_000;

/// The end of a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// The process is ready again.
    Ready,
    /// Ready again, behind the others.
    GivesWay,
    /// The process waits for an event.
    Wait(Waiting),
    /// The process has ended.
    End,
    /// The process had ended before, and its end goes on.
    Goes,
    /// The process is suspended.
    Suspended,
}

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stepped {
    /// The process steps again.
    Ready,
    /// Steps again, behind the others.
    GivesWay,
    /// Waits, unless events arrive.
    Waits,
    /// The process has ended.
    End,
}

impl<'a, P: TurnPlace<'a>> Turn<'_, P> {
    /// Runs the process for a turn: a step, and more as long as its handlers answer at once and
    /// nothing else happens. A process far behind may have several turns.
    #[inline(always)]
    pub(super) fn run(mut self, out: &mut StepOutput) -> TurnEnd {
        let batch = self.shared.config.event_batch;
        let mut catch_up = CatchUp::of(self.place, self.core.pending.len(), batch);
        self.task.receive(self.core);
        let mut steps = 1;
        loop {
            match self.advance(out) {
                Stepped::Waits if self.core.pending.is_empty() => return self.wait(),
                Stepped::Waits => {}
                Stepped::Ready => break,
                Stepped::GivesWay => {
                    self.core.expect_answers();
                    return TurnEnd::GivesWay;
                }
                Stepped::End => return TurnEnd::End,
            }
            if self.core.has_answers_alone() {
                if steps == INLINE_STEPS || self.must_end() {
                    break;
                }
                steps += 1;
            } else if let Some(catch_up) = &mut catch_up
                && catch_up.goes_on(self.core.pending.len())
                && !self.task.state.must_leave()
            {
                self.note_turn();
                self.place.count(&self.counters.turns);
                self.task.receive(self.core);
                steps = 1;
            } else {
                break;
            }
        }
        self.core.expect_answers();
        TurnEnd::Ready
    }

    /// Notes for the probe that a step begins.
    #[inline(always)]
    fn note_step(&self, events: usize) {
        let system = || (self.core.aside.as_ref()).map_or(0, |aside| aside.new_ones());
        let waiting = || self.core.waiting() - events;
        let worker = || self.place.queue().map(|queue| queue.index);
        let (probe, of) = (&self.shared.probe, || self.task.about.type_name());
        let each = |see: &mut dyn FnMut(&Event)| {
            for item in self.core.pending.iter().take(events) {
                if let Item::Event(event) = item {
                    see(event);
                }
            }
        };
        let (id, process) = (self.task.id, &self.task.probe);
        let events = (events, system, each);
        probe.step_begins(id, process, events, waiting, worker, of);
    }

    /// Begins a step with its trace, where traced.
    #[inline(always)]
    fn trace(&mut self, events: usize) -> TracedStep {
        if self.shared.carrier().traces() {
            self.apart().begin_trace(events)
        } else {
            TracedStep::default()
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_trace(self, events: usize) -> TracedStep {
        let Self { core, task, .. } = self;
        let facts = StepFacts {
            pid: task.pid(),
            method: task.method,
            type_name: task.about.type_name(),
            events: core.visible(events),
            worker: self.place.queue().map(|queue| queue.index),
        };
        let causes = core.take_causes(events);
        let carrier = self.shared.carrier();
        carrier.begin(task.carried(), facts, causes)
    }

    /// Notes the end of a turn before another turn.
    #[inline(always)]
    fn note_turn(&self) {
        let waiting = || self.core.waiting();
        let worker = || self.place.queue().map(|queue| queue.index);
        let (probe, of) = (&self.shared.probe, || self.task.about.type_name());
        let (id, process) = (self.task.id, &self.task.probe);
        probe.turn_over(id, process, Next::GoesOn, waiting, worker, of);
    }

    /// Returns whether the turn ends although answers wait.
    fn must_end(&self) -> bool {
        self.place.has_local_work()
            || self.task.state.must_leave()
            || self.shared.shutdown.is_halted()
    }

    /// Gathers events, steps the process if any, and applies the outcome.
    #[inline(always)]
    fn advance(&mut self, out: &mut StepOutput) -> Stepped {
        let events = match self.core.gather(self.shared.config.event_batch) {
            Frequent::Step(events) => events,
            Frequent::Nothing => return Stepped::Waits,
            Frequent::Rare(events) => match self.apart().gather_rare(events, out) {
                Ok(events) => events,
                Err(stepped) => return stepped,
            },
        };
        if !self.step(events, out) {
            return Stepped::End;
        }
        if out.waits() {
            // The process goes on, perhaps in this turn.
            dropped::answer(|| CommandError::Dropped);
            self.core.repeats = 0;
            return Stepped::Waits;
        }
        let goes_on = if out.take_step_again() {
            Stepped::Ready
        } else if out.take_yield_now() {
            Stepped::GivesWay
        } else {
            return self.apart().apply(out);
        };
        self.count_repeat();
        goes_on
    }

    fn count_repeat(&mut self) {
        self.core.repeats += 1;
        if self.core.repeats == MANY_REPEATS {
            self.apart().look_at_repeats();
        }
    }

    /// Looks at a process that has continued many times in a row without a new event. Warns of it,
    /// once, unless it has work: left events, or outstanding commands.
    #[cold]
    #[inline(never)]
    fn look_at_repeats(self) {
        let Self { core, task, .. } = self;
        core.repeats = 1;
        if core.has_warned || core.has_left() || !core.yields.is_empty() {
            return;
        }
        core.has_warned = true;
        let type_name = task.about.type_name();
        log(Level::WARN, || {
            tracing::warn!(
                target: "ganger::sched", pid = %task.pid(), method = %task.method,
                r#type = type_name, steps = MANY_REPEATS,
                "a process goes on without an event or a command, and keeps a core busy: a step \
                 that has nothing to do returns without `step_again`, and so waits"
            );
        });
    }

    /// Carries out upgrades, asks signals, and gathers the events behind them. Notes a
    /// cancellation.
    #[cold]
    #[inline(never)]
    fn gather_rare(mut self, events: usize, out: &mut StepOutput) -> Result<usize, Stepped> {
        let task = self.task;
        let state = &task.state;
        let (limit, counters) = (self.shared.config.event_batch, self.counters);
        if let Some(aside) = &mut self.core.aside {
            aside.begin();
        }
        let mut gathered = self.core.gather_rare(state, events, limit, counters);
        let mut told = 0;
        loop {
            let request = match gathered {
                Gathered::HeldByTimer(room) => {
                    let shared = &task.shared;
                    let is_shown = self.core.settle_held(|ticket| {
                        let envelope = shared.take_held(ticket, |_| true)?;
                        let event = Event::Message(envelope.message);
                        shared.probe.arrived_next(task.pid(), &event);
                        Some(event)
                    });
                    if !is_shown {
                        // No step gives its place back.
                        task.release_messages(MESSAGE);
                    }
                    gathered = self.core.gather_more(state, 0, room, counters);
                    continue;
                }
                Gathered::Nothing => return Err(Stepped::Waits),
                Gathered::Terminated => return Err(self.end(ExitReason::Terminated)),
                Gathered::Step(events) => return Ok(events),
                Gathered::Cancel(reason, events) => {
                    out.show_cancel(reason);
                    self.task.state.mark_finishing();
                    return Ok(events);
                }
                Gathered::Upgrade(request) => *request,
                Gathered::Signal(signal, cause) => {
                    match self.ask(signal) {
                        Arrived::Nothing => self.shared.probe.signalled(self.task.pid(), None),
                        Arrived::End(cause) => {
                            self.shared.probe.signalled(self.task.pid(), None);
                            return Err(self.end(ExitReason::Exited(cause)));
                        }
                        Arrived::Notice(notice) => {
                            let event = Event::Exit(Box::new(notice));
                            self.shared.probe.signalled(self.task.pid(), Some(&event));
                            self.core.show_last(event);
                            if let Some(cause) = cause {
                                self.core.causes().add(cause);
                            }
                            told += 1;
                        }
                    }
                    // Events behind the notices wait for the next step.
                    let is_full = told == limit;
                    if told > 0 && (is_full || !self.core.signal_is_next()) {
                        return Ok(0);
                    }
                    gathered = self.core.gather_rare(state, 0, limit, counters);
                    continue;
                }
            };
            self.shared.probe.upgrading(self.task.pid());
            if let Err(error) = self.upgrade(request) {
                return Err(self.end(ExitReason::UpgradeFailed(error)));
            }
            if self.task.state.is_terminating() {
                return Err(self.end(ExitReason::Terminated));
            }
            gathered = self.core.gather_rare(state, 0, limit, counters);
        }
    }

    /// Lets an arrived signal act.
    fn ask(&self, signal: Box<dyn ExitSignal>) -> Arrived {
        let mut arrived = Arrived::Nothing;
        let (pid, counters) = (self.task.pid(), self.counters);
        contain_and_report("exit signal", pid, counters, || arrived = signal.arrive());
        arrived
    }

    /// Applies a rare outcome: the end, or an upgrade.
    #[cold]
    #[inline(never)]
    fn apply(mut self, out: &mut StepOutput) -> Stepped {
        let cancelled = out.take_cancel();
        let outcome = out.take_outcome();
        if let Some(reason) = cancelled {
            return self.end(ExitReason::Cancelled(reason));
        }
        match outcome {
            Outcome::Done(result) => self.end(ExitReason::Done(result)),
            Outcome::Upgrade(request) => match self.upgrade(*request) {
                Ok(()) => Stepped::Ready,
                Err(error) => self.end(ExitReason::UpgradeFailed(error)),
            },
            _ => Stepped::Ready,
        }
    }

    fn end(&mut self, reason: ExitReason) -> Stepped {
        *self.end = Some(reason);
        Stepped::End
    }

    /// Runs a step, and dispatches its commands. Returns whether the process lives.
    #[inline(always)]
    fn step(&mut self, events: usize, out: &mut StepOutput) -> bool {
        let (shared, task) = (self.shared, self.task);
        self.place.count(&self.counters.steps);
        // A turn without a step leaves the waits of the last step, and the kind of an end.
        task.about.run(shared.timing.time.nanos());
        self.note_step(events);
        let traced = self.trace(events);
        let cursor = self.core.cursor(events);
        let Some((process, mut events)) = self.core.begin_step(&cursor) else {
            // Only a completed process has none, and a completed process is not queued.
            self.end(ExitReason::Terminated);
            return false;
        };
        let of = || task.about.type_name();
        shared.probe.shown(task.pid(), task.method, of, &events);
        shared.probe.interleave(&task.shared);
        let ctx = LentContext::new(task);
        let stepped = contain(|| {
            Decider::stepping();
            process.step(&ctx, &mut events.events(), out)
        });
        let failed = match stepped {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(ExitReason::Failed(error)),
            Err(message) => Some(ExitReason::Panicked(message)),
        };
        if let Some(reason) = failed {
            Carrier::fail(&traced, &reason);
            let left = end_failed_step(shared, task, &mut events);
            self.apart().fail(left, reason, out);
            Carrier::is_last(traced);
            return false;
        }
        let left = end_step(shared, task, &mut events);
        self.core.keep(left, &task.about);
        shared.probe.interleave(&task.shared);
        self.dispatch(out);
        if !out.is_final() {
            return true;
        }
        Carrier::is_last(traced);
        true
    }

    /// Ends the process after a step that has failed, or has panicked.
    #[cold]
    #[inline(never)]
    fn fail(mut self, left: usize, reason: ExitReason, out: &mut StepOutput) {
        self.core.keep(left, &self.task.about);
        self.shared.probe.interleave(&self.task.shared);
        if let ExitReason::Panicked(_) = reason {
            self.counters.panics.bump();
        } else {
            self.dispatch(out);
        }
        self.end(reason);
        // The next process must not see the rest of a panic.
        let mut out = mem::take(out);
        discard_each(self.task.pid(), self.counters, out.drain_yields());
        discard(self.task.pid(), self.counters, out.take_outcome());
    }

    /// Has the process wait, unless its system lane has an event.
    #[inline]
    fn wait(&mut self) -> TurnEnd {
        if self.core.has_system() {
            return TurnEnd::Ready;
        }
        if self.task.limit().is_some() {
            self.task.release_messages(0);
        }
        if let Some(process) = &mut self.core.process {
            process.wait();
        }
        TurnEnd::Wait(if self.core.yields.is_empty() {
            Waiting::Idle
        } else {
            Waiting::Blocked
        })
    }
}

/// Releases the taken events after the step. Returns how many new events are left.
#[inline(always)]
fn end_step(shared: &Shared, task: &Task, events: &mut StepEvents<'_>) -> usize {
    let is_limited = task.limit().is_some();
    if is_limited {
        events.count();
    }
    let left = events.settle();
    shared.probe.stepped(task.pid(), events);
    if is_limited {
        task.release_messages(events.places);
    }
    left
}

#[cold]
#[inline(never)]
fn end_failed_step(shared: &Shared, task: &Task, events: &mut StepEvents<'_>) -> usize {
    end_step(shared, task, events)
}
