//! Processes that are restarted, and pools.

use super::Ganger;
use super::depend::Asker;
use crate::whole::contestant::{Timed, failed};
use crate::whole::jobs::{POOL, compute};
use ganger_proc_api::process_fn;
use ganger_supervise::{ChildSpec, Pool, Supervisor};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// `child` makes the child of its factory.
pub(super) fn restart(ganger: &Ganger, restarts: u64, child: fn(ChildSpec) -> ChildSpec) -> Timed {
    let left = Arc::new(AtomicU64::new(restarts));
    let gate = ganger.gate;
    let mut tree = None;
    let time = gate.time(1, || {
        // Fails in its first step while any failures are left.
        let failing = ChildSpec::new("failing", move || {
            let left = Arc::clone(&left);
            process_fn(move |ctx, _, _| {
                if ctx.is_cancelled() {
                    return Ok(());
                }
                // Ordering: Relaxed: a single process at a time, and each is started by the end of
                // the process before it.
                let now = left.load(Ordering::Relaxed);
                if now > 0 {
                    left.store(now - 1, Ordering::Relaxed);
                    return Err("it fails".into());
                }
                gate.hit_with(restarts);
                Ok(())
            })
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

pub(super) fn pool(ganger: &Ganger, callers: u64, jobs: u64, length: Duration) -> Timed {
    let work = move || move |number| Ok(compute(number, length));
    let pool = Pool::new(POOL, work).start(&ganger.scheduler);
    let pool = pool.map_err(failed)?;
    let gate = ganger.gate;
    let time = gate.time(callers, || {
        (0..callers).try_for_each(|_| {
            let pool = pool.remote();
            let caller = Asker::new(gate, jobs, move |out, number| {
                out.ask(pool.call(number), number);
            });
            ganger.submit(caller).map(drop)
        })
    })?;
    pool.stop();
    Ok(time)
}
