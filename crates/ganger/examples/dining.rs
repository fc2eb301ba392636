//! Philosophers at a round table, with a fork between each two. The forks are locks. By default the
//! philosophers take the fork with the lower number first, and all eat. With `--deadlock` each
//! takes its left fork first; when all have a fork, each waits for the next, and a watch explains
//! the wait. `cargo run -p ganger --example dining -- --deadlock`

use ganger::lock::{Barrier, DeadlockKind, DeadlockWatch, Mutex, MutexGuard};
use ganger::prelude::*;
use std::sync::{Arc, PoisonError, mpsc};
use std::time::Duration;

const SEATS: usize = 5;
const MEALS: u64 = 100;

struct Table {
    /// A fork knows how often it was used.
    forks: [Mutex<u64>; SEATS],
    /// The meeting point of all philosophers with a fork.
    meet: Barrier,
}

async fn fork(table: &Table, number: usize) -> Result<MutexGuard<'_, u64>, BoxError> {
    table.forks[number]
        .lock()
        .await
        .map_err(|it| it.to_string().into())
}

/// Eats again and again, until it is cancelled. With `waits_for_all`, no philosopher takes the
/// second fork before all have their first.
async fn philosopher(
    cx: Cx,
    table: Arc<Table>,
    forks: [usize; 2],
    waits_for_all: bool,
) -> Result<u64, BoxError> {
    for _ in 0..MEALS {
        let mut first = cx.until_cancelled(fork(&table, forks[0])).await??;
        if waits_for_all {
            cx.until_cancelled(table.meet.wait()).await?;
        }
        let mut second = cx.until_cancelled(fork(&table, forks[1])).await??;
        *first += 1;
        *second += 1;
        cx.yield_now().await;
    }
    Ok(MEALS)
}

/// Returns the number of a fork's uses. A fork stays as it is when its owner fails.
fn fork_uses(fork: &Mutex<u64>) -> u64 {
    *fork.lock_blocking().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn dine(deadlocks: bool) -> Result<(), BoxError> {
    let scheduler = Scheduler::start_default()?;
    let (sender, reports) = mpsc::channel();
    let watch = DeadlockWatch::new(Duration::from_millis(50)).on_report(move |report| {
        let _gone = sender.send(report.clone());
    });
    let watch = watch.start(&scheduler.handle())?;
    let table = Arc::new(Table {
        forks: Default::default(),
        meet: Barrier::new(SEATS),
    });
    let mut philosophers = Vec::new();
    for seat in 0..SEATS {
        let (left, right) = (seat, (seat + 1) % SEATS);
        let forks = if deadlocks {
            [left, right]
        } else {
            [left.min(right), left.max(right)]
        };
        let table = Arc::clone(&table);
        let body = async move |cx| philosopher(cx, table, forks, deadlocks).await;
        philosophers.push(scheduler.spawn(body)?);
    }
    if deadlocks {
        let report = reports.iter().find(|it| it.kind == DeadlockKind::Cycle);
        let report = report.ok_or("the watch has ended")?;
        println!("{report}");
        for philosopher in &philosophers {
            scheduler.cancel(philosopher.pid(), "no philosopher eats any more")?;
        }
    }
    for (seat, philosopher) in philosophers.into_iter().enumerate() {
        println!(
            "philosopher {seat}: {}",
            philosopher
                .wait()
                .take::<u64>()
                .map_or_else(|it| it.to_string(), |it| format!("{it} meals"))
        );
    }
    for (number, fork) in table.forks.iter().enumerate() {
        println!("fork {number} was used {} times", fork_uses(fork));
    }
    drop(watch);
    Ok(())
}

pub(crate) fn main() -> Result<(), BoxError> {
    dine(std::env::args().any(|it| it == "--deadlock"))
}
