//! A factory gives jobs to its workers.

use super::Ractor;
use crate::whole::contestant::{Timed, asker, failed};
use crate::whole::gate::gate;
use crate::whole::jobs::{POOL, compute};
use ::ractor::factory::queues::DefaultQueue;
use ::ractor::factory::routing::QueuerRouting;
use ::ractor::factory::{
    Factory, FactoryArguments, FactoryRef, Job, Worker, WorkerId, worker_builder,
};
use ::ractor::{Actor, ActorProcessingErr, RpcReplyPort};
use std::time::Duration;

/// A job: its number, how long it computes, and where the answer goes.
struct Compute(u64, Duration, RpcReplyPort<u64>);

type Jobs =
    Factory<(), Compute, (), Computer, QueuerRouting<(), Compute>, DefaultQueue<(), Compute>>;

pub(super) fn run(ractor: &Ractor, callers: u64, jobs: u64, length: Duration) -> Timed {
    let args = FactoryArguments::builder()
        .worker_builder(Box::new(worker_builder(|_| (Computer, ()))))
        .queue(DefaultQueue::default())
        .router(QueuerRouting::default())
        .num_initial_workers(POOL)
        .build();
    let started = Actor::spawn(None, Jobs::default(), args);
    let (factory, _) = ractor.0.block_on(started).map_err(failed)?;
    let time = gate().time(callers, || {
        for _ in 0..callers {
            let factory = factory.clone();
            ractor.0.spawn(asker!((1..=jobs).rev(), |number| {
                let job = |reply| Compute(number, length, reply);
                let answer = factory.call_job((), job, None).await;
                answer.expect("a factory").expect("an answer")
            }));
        }
        Ok(())
    })?;
    factory.stop(None);
    Ok(time)
}

/// Does jobs in sequence.
struct Computer;

impl Worker for Computer {
    type Key = ();
    type Message = Compute;
    type State = ();
    type Arguments = ();

    async fn pre_start(
        &self,
        _: WorkerId,
        _: &FactoryRef<(), Compute>,
        (): (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: WorkerId,
        _: &FactoryRef<(), Compute>,
        Job { msg, .. }: Job<(), Compute>,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        let Compute(number, length, reply) = msg;
        Ok(reply.send(compute(number, length))?)
    }
}
