//! The simulation as a probe: its notes, and the places at which it has others act.

use super::note::{Given, Note, note};
use super::{interleave, who};
use crate::base::contain::text_of;
use crate::config::Config;
use crate::probe::{Probe, Scheduler};
use crate::runtime::shared::Shared;
use ganger_proc_api::{CommandId, EventQueue, ExitReason, Pid, Symbol, Tag};

/// Its state belongs to the thread: a thread has a driver, or has none.
pub(crate) struct Simulation;

impl Probe for Simulation {
    type Process = ();
    type Sent = ();
    type Observed = ();
    type Guard<'a> = ();

    fn new(_: &Config, _: usize) -> Self {
        Self
    }

    fn process(&self) {}

    fn shown(
        &self,
        pid: Pid,
        method: Symbol,
        of: impl Fn() -> &'static str + Copy,
        events: &impl EventQueue,
    ) {
        note(|| Note::Steps(who::see(pid, method, of()), Given::of(pid, events)));
    }

    fn yielded(&self, pid: Pid, command: CommandId, tag: Tag, _: u64) {
        note(|| Note::Yields(command, who::command(command), who::tag(pid, tag)));
    }

    fn ended(&self, pid: Pid, method: Symbol, reason: &ExitReason) {
        let text = || {
            format!(
                "{} ended: {}",
                who::describe_ended(pid, method),
                text_of(reason)
            )
        };
        note(|| Note::Told(text().into()));
    }

    fn interleave(&self, scheduler: &dyn Scheduler) {
        interleave::interleave(Shared::of(scheduler));
    }

    fn called(&self, scheduler: &dyn Scheduler, call: &'static str) {
        interleave::called(Shared::of(scheduler), call);
    }
}
