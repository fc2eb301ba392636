//! Processes that are restarted, and pools.

use super::Ganger;
use crate::whole::contestant::{Timed, failed};
use crate::whole::gate::Gate;
use crate::whole::jobs::{POOL, compute};
use ganger_proc_api::{Context, Event, Events, Process, StepOutput, StepResult};
use ganger_supervise::{ChildSpec, Pool, PoolRemote, Supervisor};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// `child` makes the child of its factory.
pub(super) fn restart(ganger: &Ganger, restarts: u64, child: fn(ChildSpec) -> ChildSpec) -> Timed {
    let left = Arc::new(AtomicU64::new(restarts));
    let gate = ganger.gate;
    let mut tree = None;
    let time = gate.time(1, || {
        let failing = ChildSpec::new("failing", move || Failing {
            left: Arc::clone(&left),
            restarts,
            gate,
        });
        let supervisor = Supervisor::one_for_one().intensity(u32::MAX, Duration::ZERO);
        let started = supervisor.with(child(failing)).start(&ganger.scheduler);
        tree = Some(started.map_err(failed)?);
        Ok(())
    })?;
    if let Some(tree) = tree {
        tree.stop();
    }
    Ok(time)
}

/// Fails in its first step while any failures are left.
struct Failing {
    left: Arc<AtomicU64>,
    restarts: u64,
    gate: &'static Gate,
}

impl Process for Failing {
    fn step(&mut self, ctx: &Context, _: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        if ctx.is_cancelled() {
            return Ok(());
        }
        // Ordering: Relaxed: a single process at a time, and each is started by the end of the
        // process before it.
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
            return Err("it fails".into());
        }
        self.gate.hit_with(self.restarts);
        Ok(())
    }
}

pub(super) fn pool(ganger: &Ganger, callers: u64, jobs: u64, length: Duration) -> Timed {
    let work = move || move |number| Ok(compute(number, length));
    let pool = Pool::new(POOL, work).start(&ganger.scheduler);
    let pool = pool.map_err(failed)?;
    let gate = ganger.gate;
    let time = gate.time(callers, || {
        (0..callers).try_for_each(|_| {
            let pool = pool.remote();
            let (left, sum) = (jobs, 0);
            let caller = Caller {
                pool,
                left,
                sum,
                gate,
            };
            ganger.submit(caller).map(drop)
        })
    })?;
    pool.stop();
    Ok(time)
}

/// Has a job done for each of the numbers from `left` down to 1, after the job before, and brings
/// the sum of the answers to the gate.
struct Caller {
    pool: PoolRemote<u64, u64>,
    left: u64,
    sum: u64,
    gate: &'static Gate,
}

impl Process for Caller {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if let Event::Completion(answer) = event {
                self.sum += answer.take::<u64>()?;
                self.left -= 1;
            }
        }
        if self.left == 0 {
            self.gate.hit_with(self.sum);
            out.done(());
        } else {
            out.ask(self.pool.call(self.left), self.left);
        }
        Ok(())
    }
}
