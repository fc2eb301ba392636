//! Processes that are async functions: they yield, send to and fro, and run once.

use crate::one_worker::{OneWorker, ended};
use ganger_proc_api::BoxError;
use ganger_sched::Address;
use ganger_task::{Cx, SpawnTask};

/// One lets others run that often.
pub(crate) fn steps(worker: &OneWorker, steps: u64) -> Result<(), BoxError> {
    let body = async move |cx: Cx| {
        for _ in 0..steps {
            cx.yield_now().await;
        }
        Ok(())
    };
    ended(worker.scheduler.spawn_task(body)?)
}

/// This thread starts all of them.
pub(crate) fn from_outside(worker: &OneWorker, processes: u64) -> Result<(), BoxError> {
    let batch = worker.batch;
    let once = async move |_: Cx| {
        batch.count_off();
        Ok(())
    };
    crate::spawning::all(worker, processes, || {
        drop(worker.scheduler.spawn_task(once)?);
        Ok(())
    })
}

/// What the two of a pair are sent.
enum Ball {
    /// The partner's address, which comes first.
    Partner(Address<Ball>),
    Number(u64),
}

/// Two send a number to and fro, counting it down.
pub(crate) fn pair(worker: &OneWorker, sends: u64) -> Result<(), BoxError> {
    let halves = [
        worker.scheduler.spawn_task(half)?,
        worker.scheduler.spawn_task(half)?,
    ];
    for (one, other) in [(0, 1), (1, 0)] {
        let partner = halves[other].address().clone();
        halves[one].send(Ball::Partner(partner))?;
    }
    halves[0].send(Ball::Number(sends))?;
    halves.into_iter().try_for_each(ended)
}

/// Ends at 1 or 0.
async fn half(cx: Cx<Ball>) -> Result<(), BoxError> {
    let Some(Ball::Partner(partner)) = cx.recv().await else {
        return Err("without a partner".into());
    };
    while let Some(Ball::Number(left)) = cx.recv().await {
        if left > 0 {
            partner.send(Ball::Number(left - 1))?;
        }
        if left <= 1 {
            break;
        }
    }
    Ok(())
}
