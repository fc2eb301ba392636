//! Philosophers at a round table think, take the forks beside them, and eat. A fork is a process
//! that is lent to one philosopher after the other. The last philosopher takes the forks in the
//! other order, so that they never wait in a circle.
//!
//! `cargo run -p ganger-task --example philosophers`

use ganger_proc_api::{BoxError, Pid};
use ganger_sched::Scheduler;
use ganger_task::{Cx, SpawnTask};

const NAMES: [&str; 5] = ["Judith", "Gilles", "Karl", "Elma", "Michel"];
const MEALS: u64 = 3;

/// What a fork is told.
enum Fork {
    Take(Pid),
    PutBack,
}

/// What a philosopher is told: that a fork is there.
struct Yours;

/// Lends itself until it is cancelled. The request of a philosopher that waits stays in its
/// mailbox.
async fn fork(cx: Cx<Fork>) -> Result<(), BoxError> {
    while let Some(Fork::Take(to)) = cx.recv_where(|it| matches!(it, Fork::Take(_))).await {
        cx.send(to, Yours)?;
        cx.recv_where(|it| matches!(it, Fork::PutBack)).await;
    }
    Ok(())
}

async fn philosopher(cx: Cx<Yours>, name: &str, forks: [Pid; 2]) -> Result<u64, BoxError> {
    let mut meals = 0;
    while meals < MEALS {
        cx.yield_now().await;
        for fork in forks {
            cx.send(fork, Fork::Take(cx.pid()))?;
            cx.recv().await.ok_or("the table is gone")?;
        }
        meals += 1;
        println!("{name} eats meal {meals}");
        for fork in forks {
            cx.send(fork, Fork::PutBack)?;
        }
    }
    Ok(meals)
}

async fn table(cx: Cx) -> Result<u64, BoxError> {
    cx.scope(async |scope| {
        let mut forks = Vec::new();
        for _ in NAMES {
            forks.push(scope.spawn(fork)?);
        }
        let guests = scope.group();
        for (seat, name) in NAMES.into_iter().enumerate() {
            let other = (seat + 1) % NAMES.len();
            let beside = [seat.min(other), seat.max(other)].map(|it| forks[it].pid());
            guests.spawn(async move |cx: Cx<Yours>| philosopher(cx, name, beside).await)?;
        }
        let mut meals = 0;
        while let Some(eaten) = guests.next().await {
            meals += eaten?;
        }
        // The forks end when they are cancelled, each without an error.
        for fork in &forks {
            cx.context().cancel(fork.pid(), "all have eaten")?;
        }
        Ok(meals)
    })
    .await
}

pub(crate) fn main() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let meals = scheduler.spawn_task(table)?.wait().into_result()?;
    assert_eq!(meals.as_u64(), Some(MEALS * NAMES.len() as u64));
    Ok(())
}
