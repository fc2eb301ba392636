//! The simulation as a probe, and as what decides in the place of chance, clock and threads.

use super::note::{Given, Note, note};
use super::{driver, interleave};
use crate::base::config::Config;
use crate::base::contain::text_of;
use crate::core::shared::Shared;
use crate::probe::{Decide, Probe, Scheduler};
use ganger_proc_api::{CommandId, EventQueue, ExitReason, Pid, Symbol, Tag};
use std::time::Duration;

/// What it keeps is the thread's: a thread has a driver, or has none.
pub(crate) struct Simulation;

impl Probe for Simulation {
    type Process = ();
    type Sent = ();
    type Observed = ();
    type Guard<'a> = ();

    fn new(_: &Config, _: usize) -> Self {
        Self
    }

    fn shown(&self, _: Pid, method: Symbol, events: &impl EventQueue) {
        note(|| Note::Steps(method, Given::of(events)));
    }

    fn yielded(&self, _: Pid, command: CommandId, tag: Tag, _: u64) {
        note(|| Note::Yields(command, tag));
    }

    fn ended(&self, pid: Pid, method: Symbol, reason: &ExitReason) {
        let text = || format!("{pid} ({method}) ended: {}", text_of(reason));
        note(|| Note::Told(text().into()));
    }

    fn interleave(&self, scheduler: &dyn Scheduler) {
        interleave::interleave(Shared::of(scheduler));
    }
}

impl Decide for Simulation {
    fn is_driven() -> bool {
        driver::is_driven()
    }

    fn choose(what: &'static str, of: usize) -> Option<usize> {
        driver::choose(what, of)
    }

    fn happens(what: &'static str) -> bool {
        driver::happens(what)
    }

    fn stepping() {
        if driver::happens("step panics") {
            super::tell("fault: the step panics");
            panic!("a fault of the simulation: the step panics");
        }
    }

    fn note_violation(message: &str) -> bool {
        driver::note_violation(message)
    }

    #[track_caller]
    fn refuse_to_block(what: &str, instead: &str) {
        // In a step the scheduler contains the panic, so it is noted as well.
        let message = format!("{what} would block the simulation for ever; use {instead}");
        assert!(!driver::note_violation(&message), "{message}");
    }

    fn hire<D: 'static>(worker: usize, deque: D) -> Option<D> {
        driver::hire(worker, deque)
    }

    fn begin_stop(scheduler: &dyn Scheduler, deadline: Duration) -> bool {
        let is_driven = driver::is_driven();
        if is_driven {
            interleave::begin_stop(Shared::of(scheduler), deadline);
        }
        is_driven
    }
}
