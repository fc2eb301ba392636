//! Putting another process in the place of one: create, initialise, close the old one.

use crate::base::contain::{contain, discard, log};
use crate::base::stats::Counters;
use crate::core::cell::Task;
use crate::core::owned::Core;
use crate::core::shared::Shared;
use crate::probe::Probe;
use crate::process::home::Home;
use crate::turn::finish::close;
use ganger_proc_api::{
    Payloads, Process, ProcessContext, Symbol, UpgradeError, UpgradeRequest, UpgradeTarget,
};
use std::sync::Arc;
use tracing::Level;

/// Replaces the process in `core`, which this thread runs.
///
/// # Errors
/// Says why there is no new process; the old one is as it was, and is to end.
pub(crate) fn upgrade(
    shared: &Shared,
    task: &Task,
    core: &mut Core,
    request: UpgradeRequest,
    counters: &Counters,
) -> Result<(), UpgradeError> {
    let UpgradeRequest {
        target,
        method,
        input,
    } = request;
    let next = match create(shared, target, counters) {
        Ok(next) => next,
        Err(error) => {
            discard(task.pid, counters, input);
            return Err(error);
        }
    };
    let next = init(task, next, method, input, counters)?;
    if let Some(old) = core.process.replace(Home::boxed(next)) {
        close(old, task, counters);
    }
    core.forget_yields(task.pid, counters);
    shared.probe.upgraded(task.pid);
    core.must_step = true;
    task.state.count_upgrade();
    counters.upgrades.bump();
    log(
        Level::DEBUG,
        || tracing::debug!(target: "ganger::sched", pid = %task.pid, %method, "upgraded"),
    );
    Ok(())
}

fn create(
    shared: &Shared,
    target: UpgradeTarget,
    counters: &Counters,
) -> Result<Box<dyn Process>, UpgradeError> {
    match target {
        UpgradeTarget::Process(process) => Ok(process.into_inner()),
        UpgradeTarget::Factory(name) => {
            let factory = shared
                .factories
                .get(name)
                .ok_or(UpgradeError::UnknownFactory(name))?;
            contain(|| factory()).map_err(|message| {
                counters.panics.bump();
                UpgradeError::FactoryPanicked(message)
            })
        }
        _ => unreachable!("an upgrade's target is a process or a factory"),
    }
}

fn init(
    task: &Task,
    mut next: Box<dyn Process>,
    method: Symbol,
    input: Payloads,
    counters: &Counters,
) -> Result<Box<dyn Process>, UpgradeError> {
    let ctx = ProcessContext::new(Arc::clone(task) as _);
    let error = match contain(|| next.init(&ctx, &method, input)) {
        Ok(Ok(())) => {
            task.shared.probe.initialised(task.pid);
            return Ok(next);
        }
        Ok(Err(error)) => UpgradeError::InitFailed(error),
        Err(message) => {
            counters.panics.bump();
            UpgradeError::InitPanicked(message)
        }
    };
    discard(task.pid, counters, next);
    Err(error)
}
