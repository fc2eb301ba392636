//! The map from ids to processes, used by a single thread: a look-up, an insertion with its
//! removal, and an id that a user chooses. The order of visits is such that no cache predicts it.

use criterion::{BenchmarkId, Criterion};
use ganger_sched::Scheduler;
use ganger_sched::internal::measured::Processes;
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let scheduler = Scheduler::builder().workers(2).build()?;
    let mut group = criterion.benchmark_group("registry");
    for count in [1_000_u32, 100_000] {
        let processes = Processes::new(&scheduler, count);
        let mut order = Order::of(count);
        let mut next = || order.next();
        group.bench_function(BenchmarkId::new("look_up", count), |bencher| {
            bencher.iter(|| assert!(processes.id(next()).is_some_and(|id| processes.has(id))));
        });
        group.bench_function(BenchmarkId::new("look_up_absent", count), |bencher| {
            let absent = |nth| processes.id(nth).map(|id| id + (1 << 32));
            bencher.iter(|| assert!(!absent(next()).is_some_and(|id| processes.has(id))));
        });
        group.bench_function(BenchmarkId::new("remove_and_insert", count), |bencher| {
            bencher.iter(|| assert!(processes.replace(next())));
        });
        group.bench_function(BenchmarkId::new("reserve_and_remove", count), |bencher| {
            bencher.iter(|| assert!(processes.reserve(next().into())));
        });
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}

/// The numbers below a power of ten, over and over, each once a round.
struct Order {
    at: u32,
    stride: u32,
    count: u32,
}

impl Order {
    fn of(count: u32) -> Self {
        // Has no factor in common with a power of ten.
        let stride = 61_803 % count;
        Self {
            at: 0,
            stride,
            count,
        }
    }

    fn next(&mut self) -> u32 {
        self.at += self.stride;
        if self.at >= self.count {
            self.at -= self.count;
        }
        self.at
    }
}
