//! Philosophers share forks at a round table. Each eats three times.
//! `cargo run -p ganger --example philosophers`

use ganger::prelude::*;

const SEATS: usize = 5;
const MEALS: u64 = 3;

enum Fork {
    Take(Reply<()>),
    PutBack,
}

/// Serves a single philosopher at a time; the requests of others stay in its mailbox.
async fn fork(cx: Cx<Fork>) -> Result<(), BoxError> {
    while let Some(Fork::Take(reply)) = cx.recv_where(|it| matches!(it, Fork::Take(_))).await {
        reply.complete(());
        cx.recv_where(|it| matches!(it, Fork::PutBack)).await;
    }
    Ok(())
}

/// Takes both forks in turn, eats, and puts them back.
async fn philosopher(_: Cx, forks: [Address<Fork>; 2]) -> Result<u64, BoxError> {
    for _ in 0..MEALS {
        for fork in &forks {
            fork.call(Fork::Take).await?;
        }
        for fork in &forks {
            fork.send(Fork::PutBack)?;
        }
    }
    Ok(MEALS)
}

pub(crate) fn main() -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let forks = (0..SEATS).map(|_| scheduler.spawn(fork));
    let forks = forks.collect::<Result<Vec<_>, _>>()?;
    let mut philosophers = Vec::new();
    for seat in 0..SEATS {
        // All take the fork with the lower number first, so none waits in a circle.
        let (left, right) = (seat, (seat + 1) % SEATS);
        let forks = [left.min(right), left.max(right)].map(|it| forks[it].address().clone());
        philosophers.push(scheduler.spawn(async move |cx| philosopher(cx, forks).await)?);
    }
    for (seat, philosopher) in philosophers.into_iter().enumerate() {
        let meals: u64 = philosopher.wait().take()?;
        println!("philosopher {seat} has eaten {meals} times");
    }
    Ok(())
}
