//! The deque: the costs of its owner, and of a thief.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use ganger_deque::{Steal, Worker};
use std::hint::black_box;
use std::time::Duration;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    push_pop(&mut criterion);
    steal_half(&mut criterion);
    steal_from_empty(&mut criterion);
    criterion.final_summary();
}

/// As many pushes as the depth, then as many pops; time for a push and a pop.
fn push_pop(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("deque/push_pop");
    for depth in [1_u64, 8, 64, 256] {
        let worker = Worker::with_capacity(256);
        group.throughput(Throughput::Elements(depth));
        group.bench_function(BenchmarkId::from_parameter(depth), |bencher| {
            bencher.iter(|| {
                for item in 0..depth {
                    worker.push(black_box(item));
                }
                for _ in 0..depth {
                    black_box(worker.pop());
                }
            });
        });
    }
}

/// A thief that takes 32 of 64 exposed items.
fn steal_half(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("deque/steal_half_into");
    group.throughput(Throughput::Elements(32));
    group.bench_function("32_of_64", |bencher| {
        let full = || {
            let (worker, thief) = (Worker::with_capacity(64), Worker::with_capacity(64));
            for item in 0..64_u64 {
                worker.push(item);
            }
            worker.expose();
            (worker.stealer(), worker, thief)
        };
        // Few enough at a time for the cache of a core.
        bencher.iter_batched_ref(
            full,
            |(stealer, _, thief)| {
                assert_eq!(stealer.steal_half_into(thief, 32), Steal::Success(32));
            },
            BatchSize::NumIterations(64),
        );
    });
}

/// A thief that finds nothing.
fn steal_from_empty(criterion: &mut Criterion) {
    let (worker, thief) = (Worker::<u64>::new(), Worker::new());
    let stealer = worker.stealer();
    criterion.bench_function("deque/steal_half_into/empty", |bencher| {
        bencher.iter(|| black_box(&stealer).steal_half_into(&thief, 32));
    });
}
