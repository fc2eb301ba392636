//! The workloads of locks.

use super::{Ganger, Locks, Tokio};
use crate::channels::{OnGanger, OnTokio, Runtime};
use crate::contest::{Contest, Run, build_go, nanoseconds, run_go};
use std::cell::LazyCell;
use std::future::{Future, poll_fn};
use std::hint::{black_box, spin_loop};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::LazyLock;
use std::sync::{Arc, mpsc};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

/// The locks of the crate `parking_lot`, which is for threads: it runs uncontended alone.
const PARKING_LOT: &str = "parking_lot";

/// Go's locks: a program of its own, which is built at the first need.
static GO: LazyLock<Option<PathBuf>> = LazyLock::new(|| build_go("locks"));

/// The work of a contest.
#[derive(Debug, Clone, Copy)]
struct Work {
    kind: Kind,
    tasks: u64,
    turns: u64,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A task takes turns alone.
    Uncontended,
    /// Tasks take turns, each with `inside` microseconds inside.
    Mutex { inside: u64 },
    /// Tasks take turns, with at most `permits` tasks inside at a time.
    Semaphore { permits: usize },
    /// Tasks sleep until a single act wakes all of them: a notice, or the close of the semaphore.
    Wake { closes: bool },
}

/// Returns the workloads with all peers, ready to run. `quick` makes them small: enough to see that
/// they work, too little to say how fast.
pub fn contests(quick: bool) -> Vec<Contest> {
    let turns = if quick { 10_000 } else { 400_000 };
    let waiters = if quick { 1_000 } else { 10_000 };
    let mut contests = vec![contest(Kind::Uncontended, 1, 10 * turns)];
    for tasks in [2, 1_000] {
        contests.push(contest(Kind::Mutex { inside: 0 }, tasks, turns));
        contests.push(contest(Kind::Mutex { inside: 1 }, tasks, turns / 4));
    }
    contests.push(contest(Kind::Semaphore { permits: 4 }, 100, turns));
    contests.push(contest(Kind::Wake { closes: false }, waiters, 0));
    contests.push(contest(Kind::Wake { closes: true }, waiters, 0));
    contests
}

fn contest(kind: Kind, tasks: u64, turns: u64) -> Contest {
    let name = match kind {
        Kind::Uncontended => "mutex, uncontended".to_owned(),
        Kind::Mutex { inside } => format!("mutex, {tasks} tasks, {inside} us inside"),
        Kind::Semaphore { permits } => format!("semaphore, {tasks} tasks, {permits} permits"),
        Kind::Wake { closes: false } => format!("{tasks} woken by a notify"),
        Kind::Wake { closes: true } => format!("{tasks} woken by a close"),
    };
    let metrics: &[_] = match kind {
        Kind::Mutex { .. } => &["ns", "worst wait, us"],
        _ => &["ns"],
    };
    let work = Work { kind, tasks, turns };
    let entrants = vec![
        (Ganger::NAME, prepare::<Ganger, OnGanger>(work)),
        (Tokio::NAME, prepare::<Tokio, OnTokio>(work)),
        (PARKING_LOT, parking_lot(work, metrics.len())),
        ("Go", by_go(work, metrics.len())),
    ];
    Contest::new(name, metrics, entrants)
}

/// Nanoseconds, and further figures of the workload.
fn by_go(Work { kind, tasks, turns }: Work, metrics: usize) -> Run {
    let (name, more) = match kind {
        Kind::Uncontended => ("mutex", 0),
        Kind::Mutex { inside } => ("contended", inside),
        Kind::Semaphore { permits } => ("semaphore", permits as u64),
        Kind::Wake { closes } => ("wake", closes.into()),
    };
    let mut args = vec![name.to_owned()];
    args.extend([tasks, more, turns].map(|it| it.to_string()));
    Box::new(move || run_go(GO.as_ref(), &args).unwrap_or_else(|| vec![f64::NAN; metrics]))
}

fn parking_lot(Work { kind, turns, .. }: Work, metrics: usize) -> Run {
    Box::new(move || {
        let Kind::Uncontended = kind else {
            return vec![f64::NAN; metrics];
        };
        let lock = parking_lot::Mutex::new(0);
        let start = Instant::now();
        for _ in 0..turns {
            *black_box(&lock).lock() += black_box(1);
        }
        vec![nanoseconds(start.elapsed(), turns)]
    })
}

fn prepare<L: Locks, R: Runtime>(Work { kind, tasks, turns }: Work) -> Run {
    // Started when it is first needed, and left with its threads asleep.
    let runtime = LazyCell::new(R::new);
    let locks = |permits| Arc::new(L::new(permits));
    Box::new(move || match kind {
        Kind::Uncontended => vec![alone(&L::new(1), turns)],
        Kind::Mutex { inside } => mutex(&*runtime, &locks(1), (tasks, inside, turns)),
        Kind::Semaphore { permits } => vec![semaphore(&*runtime, &locks(permits), tasks, turns)],
        Kind::Wake { closes } => vec![wake(&*runtime, &locks(0), tasks, closes)],
    })
}

fn alone(locks: &impl Locks, turns: u64) -> f64 {
    let mut context = Context::from_waker(Waker::noop());
    let start = Instant::now();
    for _ in 0..turns {
        let turn = pin!(black_box(locks).with(|it| *it += black_box(1)));
        assert!(turn.poll(&mut context).is_ready());
    }
    nanoseconds(start.elapsed(), turns)
}

fn spin(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        spin_loop();
    }
}

fn mutex<L: Locks>(
    runtime: &impl Runtime,
    locks: &Arc<L>,
    (tasks, inside, turns): (u64, u64, u64),
) -> Vec<f64> {
    let (done, waits) = mpsc::channel();
    let (each, inside) = (turns / tasks, Duration::from_micros(inside));
    let start = Instant::now();
    for _ in 0..tasks {
        let (locks, done) = (Arc::clone(locks), done.clone());
        runtime.spawn(async move {
            let (mut worst, mut last) = (Duration::ZERO, Instant::now());
            for _ in 0..each {
                let turn = locks.with(move |it| {
                    *it += 1;
                    if !inside.is_zero() {
                        spin(inside);
                    }
                });
                turn.await;
                // A single look at the clock a turn, which takes as long as a turn, and not inside.
                let now = Instant::now();
                worst = worst.max((now - last).saturating_sub(inside));
                last = now;
            }
            done.send(worst).expect("it is waited for");
        });
    }
    drop(done);
    let worst = waits.iter().max().unwrap_or_default();
    let time = start.elapsed();
    vec![nanoseconds(time, each * tasks), worst.as_secs_f64() * 1e6]
}

fn semaphore<L: Locks>(runtime: &impl Runtime, locks: &Arc<L>, tasks: u64, turns: u64) -> f64 {
    let (done, all_done) = mpsc::channel::<()>();
    let each = turns / tasks;
    let start = Instant::now();
    for _ in 0..tasks {
        let (locks, done) = (Arc::clone(locks), done.clone());
        runtime.spawn(async move {
            for turn in 0..each {
                locks.permitted(|| assert!(black_box(turn) < each)).await;
            }
            drop(done);
        });
    }
    drop(done);
    assert!(all_done.recv().is_err());
    nanoseconds(start.elapsed(), each * tasks)
}

/// Polls it, and drops `asleep` after the first poll: it is in the queue.
async fn until<F: Future>(waits: F, asleep: mpsc::Sender<()>) -> F::Output {
    let (mut waits, mut asleep) = (pin!(waits), Some(asleep));
    poll_fn(|context| {
        let polled = waits.as_mut().poll(context);
        drop(asleep.take());
        polled
    })
    .await
}

fn wake<L: Locks>(runtime: &impl Runtime, locks: &Arc<L>, waiters: u64, closes: bool) -> f64 {
    let (asleep, all_asleep) = mpsc::channel();
    let (done, all_done) = mpsc::channel::<()>();
    for _ in 0..waiters {
        let (locks, done, asleep) = (Arc::clone(locks), done.clone(), asleep.clone());
        runtime.spawn(async move {
            if closes {
                until(locks.permitted(|| {}), asleep).await;
            } else {
                until(locks.notified(), asleep).await;
            }
            drop(done);
        });
    }
    drop((asleep, done));
    assert!(all_asleep.recv().is_err());
    let start = Instant::now();
    if closes {
        locks.close();
    } else {
        locks.notify_all();
    }
    assert!(all_done.recv().is_err());
    nanoseconds(start.elapsed(), waiters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_does_what_it_is_told() {
        for contest in contests(true) {
            let outcome = contest.run(1);
            assert!(outcome.rows[0].samples[0][0] > 0.0);
        }
    }
}
