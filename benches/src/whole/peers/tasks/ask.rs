//! Commands and questions in sequence that another task answers.

use super::Tasks;
use crate::whole::contestant::{Timed, failed};
use crate::whole::job::Error;
use ganger_proc_api::{Reply, TypedCommand};
use ganger_sched::Scheduler;
use ganger_task::Cx;

/// Answered with its own number.
struct Ask(u64);

impl TypedCommand for Ask {
    type Answer = u64;
}

/// Starts the task that answers, and registers the handler that passes commands to it.
pub(super) fn register(scheduler: &Scheduler) -> Result<(), Error> {
    let server = async |cx: Cx<(u64, Reply<u64>)>| {
        while let Some((number, reply)) = cx.recv().await {
            reply.complete(number);
        }
        Ok(())
    };
    let server = scheduler.spawn(server).map_err(failed)?;
    let server = server.address().clone();
    let ask = move |Ask(number), reply| Ok(server.send((number, reply))?);
    scheduler.register_for(ask).map_err(failed)
}

pub(super) fn run(tasks: &Tasks, commands: u64) -> Timed {
    let gate = tasks.gate;
    let asker = async move |cx: Cx| {
        let mut sum = 0;
        for number in 1..=commands {
            sum += cx.command(Ask(number)).await?;
        }
        gate.hit_with(sum);
        Ok(())
    };
    gate.time(1, || tasks.start(asker).map(drop))
}

pub(super) fn call(tasks: &Tasks, calls: u64) -> Timed {
    let gate = tasks.gate;
    let server = tasks.start(async move |cx: Cx<(u64, Reply<u64>)>| {
        for _ in 0..calls {
            let (number, reply) = cx.recv().await.ok_or("cancelled")?;
            reply.complete(number);
        }
        gate.hit();
        Ok(())
    })?;
    let to = server.address().clone();
    let asker = async move |cx: Cx| {
        let mut sum = 0;
        for number in 1..=calls {
            sum += cx.ask(to.call(move |reply| (number, reply))).await?;
        }
        gate.hit_with(sum);
        Ok(())
    };
    gate.time(2, || tasks.start(asker).map(drop))
}
