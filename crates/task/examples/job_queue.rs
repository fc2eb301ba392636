//! A queue of jobs, in which what fails is tried again. Everything is an async function: the queue,
//! its workers, and the handler that carries a job out.
//!
//! `cargo run -p ganger-task --example job_queue`

use ganger_proc_api::{BoxError, TypedCommand};
use ganger_sched::Scheduler;
use ganger_task::{Cx, SpawnTask};

const JOBS: u64 = 20;
const WORKERS: usize = 4;
const TRIES: u64 = 3;

/// Carries a job out, which fails now and then.
struct Run {
    job: u64,
    attempt: u64,
}

impl TypedCommand for Run {
    type Answer = String;
}

async fn run(_: Cx, Run { job, attempt }: Run) -> Result<String, BoxError> {
    match job % 7 < attempt * 3 {
        true => Ok(format!("job {job} is done, at attempt {attempt}")),
        false => Err("the network is down".into()),
    }
}

/// Tries until the job is done, or has failed too often.
async fn work(cx: &Cx<u64>, job: u64) -> Result<String, BoxError> {
    let mut attempt = 1;
    loop {
        match cx.command(Run { job, attempt }).await {
            Ok(done) => return Ok(done),
            Err(error) if error.is_cancelled() || attempt == TRIES => return Err(error.into()),
            Err(_) => attempt += 1,
        }
    }
}

/// Takes jobs until it is sent the last one, and gives what came of them.
async fn worker(cx: Cx<u64>) -> Result<Vec<String>, BoxError> {
    let mut lines = Vec::new();
    while let Some(job) = cx.recv().await.filter(|&job| job < JOBS) {
        lines.push(work(&cx, job).await?);
    }
    Ok(lines)
}

/// Gives the jobs to its workers in turn, and waits for all. A job that fails for good ends it.
async fn queue(cx: Cx) -> Result<u64, BoxError> {
    cx.scope(async |scope| {
        let workers = scope.group();
        let mut pids = Vec::new();
        for _ in 0..WORKERS {
            pids.push(workers.spawn(worker)?);
        }
        for (job, &worker) in (0..JOBS).zip(pids.iter().cycle()) {
            cx.send(worker, job)?;
        }
        for &worker in &pids {
            cx.send(worker, JOBS)?;
        }
        let mut done = 0;
        while let Some(lines) = workers.next().await {
            for line in lines? {
                println!("{line}");
                done += 1;
            }
        }
        Ok(done)
    })
    .await
}

pub(crate) fn main() -> Result<(), BoxError> {
    let scheduler = Scheduler::builder().build()?;
    scheduler.register_task(run)?;
    scheduler.start()?;
    let done = scheduler.spawn_task(queue)?.wait().into_result()?;
    assert_eq!(done.as_u64(), Some(JOBS));
    Ok(())
}
