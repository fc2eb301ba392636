//! The points on the way of a process, in order.

use super::{Arrival, Probe, Push, Scheduler};
use crate::Scheduler as Ganger;
use crate::config::Config;
use ganger_proc_api::{
    Command, CommandId, Completer, Context, Event, EventQueue, Events, ExitReason, Message, Pid,
    Process, StepOutput, StepResult, Symbol, Tag,
};
use ganger_sync::sync::{Mutex, lock};
use std::sync::Arc;

/// Notes the points from [`watch`](Self::watch) on.
pub(crate) struct Watcher(Mutex<Option<Vec<String>>>);

/// Notes the end of a push.
#[derive(Default)]
pub(crate) struct Pushed<'a>(Option<&'a Watcher>);

impl Drop for Pushed<'_> {
    fn drop(&mut self) {
        if let Some(watcher) = self.0 {
            watcher.note("pushed");
        }
    }
}

impl Watcher {
    fn watch(&self) {
        *lock(&self.0) = Some(Vec::new());
    }

    fn seen(&self) -> Vec<String> {
        lock(&self.0).take().unwrap_or_default()
    }

    fn note(&self, point: impl Into<String>) {
        if let Some(points) = &mut *lock(&self.0) {
            points.push(point.into());
        }
    }
}

impl Probe for Watcher {
    type Process = ();
    type Sent = usize;
    type Observed = ();
    type Guard<'a> = Pushed<'a>;

    fn new(_: &Config, _: usize) -> Self {
        Self(Mutex::new(None))
    }

    fn process(&self) {}

    fn pushing(&self, (): &(), push: Push, before: impl Fn() -> usize + Copy) -> Pushed<'_> {
        self.note(format!("pushing {push:?} behind {}", before()));
        Pushed(Some(self))
    }

    fn picked(&self, worker: usize, (): &()) {
        self.note(format!("picked by {worker}"));
    }

    fn initialised(&self, _: Pid) {
        self.note("initialised");
    }

    fn turn_begins(&self, (): &()) {
        self.note("turn begins");
    }

    fn turn_ends(&self, (): &()) {
        self.note("turn ends");
    }

    fn shown(
        &self,
        _: Pid,
        method: Symbol,
        of: impl Fn() -> &'static str + Copy,
        events: &impl EventQueue,
    ) {
        let is_asker = of().ends_with("Asker");
        self.note(format!("{method} is shown {}: {is_asker}", events.len()));
    }

    fn stepped(&self, _: Pid, left: &impl EventQueue) {
        self.note(format!("stepped and left {}", left.len()));
    }

    fn closing(&self, _: Pid) {
        self.note("closing");
    }

    fn dropping<'a>(&self, _: Pid, items: impl Iterator<Item = Arrival<'a>> + Clone) {
        self.note(format!("dropping {}", items.count()));
    }

    fn ended(&self, _: Pid, _: Symbol, reason: &ExitReason) {
        self.note(format!("ended, done: {}", reason.is_done()));
    }

    fn told(&self, _: Pid, is_told: impl Fn() -> bool + Copy) {
        self.note(format!("told: {}", is_told()));
    }

    fn sending<'a>(&self, items: impl Iterator<Item = Arrival<'a>> + Clone) -> usize {
        items.count()
    }

    fn accepted(&self, _: Pid, sent: usize) {
        self.note(format!("accepted {sent}"));
    }

    fn yielded(&self, _: Pid, command: CommandId, tag: Tag, token: u64) {
        self.note(format!("yielded {command}, {tag}, {token}"));
    }

    fn answered(&self) {
        self.note("answered");
    }

    fn answered_inline(&self, _: Pid, tag: Tag, token: u64) {
        self.note(format!("answered inline, {tag}, {token}"));
    }

    fn interleave(&self, _: &dyn Scheduler) {
        self.note("interleave");
    }

    fn called(&self, _: &dyn Scheduler, call: &'static str) {
        self.note(format!("called {call}"));
    }
}

/// Asks once, and ends with the answer.
struct Asker;

impl Process for Asker {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if events.any(|event| matches!(event, Event::Completion(_))) {
            out.done(());
        } else {
            assert_eq!(ctx.whereis("nobody"), None);
            out.yield_command(Command::new(ASK, ()), 7);
        }
        Ok(())
    }
}

const ASK: CommandId = CommandId::new(264);

// pins: P12
#[test]
fn a_probe_sees_the_life_of_a_process_in_order() {
    let scheduler = Ganger::builder().workers(1).build().unwrap();
    let answer = |_: Command, completer: Completer| {
        completer.complete(());
        Ok(())
    };
    scheduler.register(ASK, "ask", answer).unwrap();
    let shared = Arc::clone(&scheduler.shared);
    let watcher = &shared.probe.1.1;
    watcher.watch();
    let process = scheduler.submit(Asker, "main", ()).unwrap();
    process.send(Message::new("go", ())).unwrap();
    scheduler.start().unwrap();
    assert!(process.wait().is_done());
    // The handle may know before the last point.
    drop(scheduler);
    let expected = [
        "initialised",
        "interleave",
        "interleave",
        "pushing Global behind 0",
        "pushed",
        "accepted 1",
        "called send",
        "picked by 0",
        "turn begins",
        "main is shown 1: true",
        "interleave",
        "called whereis",
        "stepped and left 0",
        "interleave",
        "yielded 264, 7, 1",
        "answered",
        "answered inline, 7, 1",
        "main is shown 1: true",
        "interleave",
        "stepped and left 0",
        "interleave",
        "turn ends",
        "dropping 0",
        "closing",
        "ended, done: true",
        "interleave",
        "told: true",
    ];
    assert_eq!(watcher.seen(), expected);
}
