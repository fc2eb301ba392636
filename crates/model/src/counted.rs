//! The counts of an observed scheduler, compared with a re-count.
//!
//! **Problem.** Counts that are nearly right mislead, and a test that knows a few runs finds few of
//! the ways to count something twice or never.
//!
//! **Protocol.**
//! 1. The specification counts the steps of each process, and the new events among those that they
//!    are shown: see `Life::show`. Each step compares the counts, and so does the last step of a
//!    process.
//! 2. When nothing moves any more, the counts of all live processes are compared again.
//! 3. Nothing notes turns. So the turns of the live processes since the last look have to be those
//!    that workers have counted meanwhile. Where a process has ended since, the workers have
//!    counted more turns.
//! 4. A worker measures its first step, and then each that is [`SAMPLE`] steps later.

use crate::world::{Turns, World};
use ganger_proc_api::Pid;
use ganger_sched::{Handle, Observe};
use std::collections::HashMap;

/// As the scheduler promises (V5).
const SAMPLE: u64 = 64;

/// Compares the counts of a process in the middle of its step.
pub(crate) fn look_in_a_step(world: &World, pid: Pid) {
    let handle = world.handle();
    let counts = handle.and_then(|it| it.look_at(pid, |process| process.counts()).flatten());
    if let Some(counts) = counts {
        let expected = world.state().spec.seen_by(pid);
        let found = Some((counts.steps, counts.events));
        world.compare("steps and events in a step (V5)", Some(expected), found);
    }
}

/// Compares all counts of a scheduler in which nothing moves.
pub(crate) fn look_at_all(world: &World, handle: &Handle) {
    if handle.observes() == Observe::Off {
        return;
    }
    let mut turns = HashMap::new();
    handle.each_process(|process| {
        let (pid, counts) = (process.pid(), process.counts());
        let found = counts.map(|it| (it.steps, it.events));
        let expected = world.state().spec.seen_by(pid);
        world.compare("steps and events (V5)", Some((pid, expected)), (pid, found));
        let found = counts.map(|it| it.waiting);
        let expected = world.state().spec.left_by(pid);
        world.compare("what waits (V5)", Some((pid, expected)), (pid, found));
        world.compare(
            "what a look finds waiting (V5)",
            expected,
            process.waiting() as u64,
        );
        turns.extend(counts.map(|it| (pid, it.turns)));
    });
    let total = handle.stats().total;
    let expected = world.state().spec.steps();
    world.compare("all steps (V5)", Some(expected), total.steps);
    let expected = world.state().spec.events();
    let found = handle.events();
    world.compare("all events (V5)", Some(Some(expected)), found);
    look_at_turns(world, turns, total.turns);
    look_at_samples(world, handle);
}

fn look_at_turns(world: &World, of: HashMap<Pid, u64>, all: u64) {
    let ended = world.state().spec.counts().ended();
    let now = Turns { of, all, ended };
    let before = std::mem::take(&mut world.state().turns);
    if ended == before.ended {
        let more = |(pid, turns): (&Pid, &u64)| turns - before.of.get(pid).unwrap_or(&0);
        let found: u64 = now.of.iter().map(more).sum();
        world.compare("turns (V5)", Some(all - before.all), found);
    } else {
        let found: u64 = now.of.values().sum();
        world.compare("no more turns than of all (V5)", Some(true), found <= all);
    }
    world.state().turns = now;
}

/// Compares how many steps have been measured.
fn look_at_samples(world: &World, handle: &Handle) {
    let Some(measured) = handle.distributions() else {
        return;
    };
    let steps = handle.worker_stats().into_iter().map(|it| it.steps);
    let expected = match handle.observes() {
        Observe::Histograms => steps.map(|steps| steps.div_ceil(SAMPLE)).sum(),
        _ => 0,
    };
    world.compare("measured steps (V5)", Some(expected), measured.step.len());
    let types = measured.by_type.values();
    let by_type = types.fold((0, 0), |(steps, waits), it| {
        (steps + it.step.len(), waits + it.ready.len())
    });
    let all = (measured.step.len(), measured.ready.len());
    world.compare("what is measured of types (V5)", Some(all), by_type);
}
