//! The simulation as a probe: what it notes, and where it has others act.

use super::interleave;
use super::note::{Given, Note, note};
use crate::base::config::Config;
use crate::base::contain::text_of;
use crate::core::shared::Shared;
use crate::probe::{Probe, Scheduler};
use ganger_proc_api::{CommandId, EventQueue, ExitReason, Pid, Symbol, Tag};

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
