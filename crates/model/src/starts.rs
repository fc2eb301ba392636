//! Starts and upgrades of processes, from outside.

use crate::actor::{Actor, heir, submit};
use crate::notes::{Call, Number, Upgraded};
use crate::plan::{Nature, Next, Start};
use crate::world::{Submission, World};
use ganger_proc_api::{Pid, SubmitError, Symbol};
use ganger_sched::{Handle, UpgradeRefused, UpgradeRefusedKind};
use std::sync::Arc;

/// Submits a process from outside.
pub(crate) fn submit_from_outside(
    world: &Arc<World>,
    handle: &Handle,
    nature: Nature,
    start: Start,
    chosen: Option<u64>,
) {
    let chosen = chosen.map(|id| world.pid(handle, id));
    submit(
        world,
        nature,
        start,
        chosen,
        None,
        |actor, method, input| submit_to(handle, chosen, actor, method, input),
    );
}

/// Submits a process to the scheduler, under a chosen PID if given.
pub(crate) fn submit_to(
    handle: &Handle,
    chosen: Option<Pid>,
    actor: Actor,
    method: Symbol,
    input: Number,
) -> Result<Submission, SubmitError> {
    let process = match chosen {
        Some(pid) => handle.submit_as(pid, actor, method, input),
        None => handle.submit(actor, method, input),
    }?;
    Ok((process.pid(), Some(process)))
}

pub(crate) fn upgrade(world: &Arc<World>, handle: &Handle, pid: Pid, next: Next) {
    let (heir, request) = heir(world, next);
    let expected = world.ask(
        |answer| Call::Upgrade(pid, heir, answer),
        |spec| spec.upgrade(pid, heir),
    );
    let found = match handle.upgrade(pid, request) {
        Ok(()) => Upgraded::Accepted,
        Err(UpgradeRefused { kind, .. }) => match kind {
            UpgradeRefusedKind::UnknownFactory(_) => Upgraded::UnknownFactory,
            _ => Upgraded::NotFound,
        },
    };
    world.reach("an upgrade (P11)", expected, found);
}
