//! Tasks that set timers.

use super::Tasks;
use crate::whole::contestant::{Timed, failed};
use crate::whole::job::Error;
use crate::whole::timed::{Due, churn_time};
use ganger_sched::ProcessHandle;
use ganger_task::Cx;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

/// A task begins a sleep and gives it up, this many times.
pub(super) fn churn(tasks: &Tasks, rounds: u64, has_step: bool) -> Timed {
    let gate = tasks.gate;
    let task = async move |cx: Cx| {
        for number in 0..rounds {
            let mut sleep = pin!(cx.sleep(churn_time(number)));
            // The first poll begins it.
            let polled = poll_fn(|context| Poll::Ready(sleep.as_mut().poll(context))).await;
            assert!(polled.is_pending());
            if has_step {
                cx.yield_now().await;
            }
        }
        gate.hit();
        Ok(())
    };
    gate.time(1, || tasks.start(task).map(drop))
}

/// Tasks that hit the gate when they start, and when a message or a timer ends them.
pub(super) fn crowd(
    tasks: &Tasks,
    processes: u64,
    due: Due,
) -> Result<(Duration, Vec<ProcessHandle<u64>>), Error> {
    let gate = tasks.gate;
    let mut crowd = Vec::with_capacity(usize::try_from(processes).map_err(failed)?);
    let time = gate.time(processes, || {
        for number in 0..processes {
            let due = due.at(number);
            let wait = async move |cx: Cx<u64>| {
                gate.hit();
                let left = due.saturating_duration_since(Instant::now());
                if let Ok(message) = cx.timeout(left, cx.recv()).await {
                    message.ok_or("cancelled")?;
                }
                gate.hit();
                Ok(())
            };
            crowd.push(tasks.start(wait)?);
        }
        Ok(())
    })?;
    Ok((time, crowd))
}
