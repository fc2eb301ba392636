//! The mailbox on a single thread: the cost of each operation without contention.

use criterion::{BatchSize, Criterion, Throughput};
use ganger_mpsc::{Queue, channel};
use std::hint::black_box;
use std::time::Duration;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    send_receive(&mut criterion);
    drain(&mut criterion);
    push_all(&mut criterion);
    criterion.final_summary();
}

/// A burst of 100 sends, then as many receives; time for a send and a receive.
fn send_receive(criterion: &mut Criterion) {
    const BURST: u64 = 100;
    let (sender, receiver) = channel();
    let mut group = criterion.benchmark_group("mpsc/send_receive");
    group.throughput(Throughput::Elements(BURST));
    group.bench_function("burst_100", |bencher| {
        bencher.iter(|| {
            for item in 0..BURST {
                sender.send(black_box(item)).expect("the receiver is there");
            }
            for item in 0..BURST {
                assert_eq!(receiver.try_recv(), Ok(item));
            }
        });
    });
}

/// Taking 64 items out at once, without freeing them.
fn drain(criterion: &mut Criterion) {
    const ITEMS: u64 = 64;
    let mut group = criterion.benchmark_group("mpsc/drain");
    group.throughput(Throughput::Elements(ITEMS));
    group.bench_function("64", |bencher| {
        let full = || {
            let queue = Queue::new();
            for item in 0..ITEMS {
                assert!(queue.push(item).is_ok());
            }
            queue
        };
        bencher.iter_batched_ref(full, |queue| queue.drain(), BatchSize::NumIterations(64));
    });
}

/// Puts 16 items in by a single exchange, and takes them out again.
fn push_all(criterion: &mut Criterion) {
    const ITEMS: u64 = 16;
    let queue = Queue::new();
    let mut group = criterion.benchmark_group("mpsc/push_all");
    group.throughput(Throughput::Elements(ITEMS));
    group.bench_function("16", |bencher| {
        bencher.iter(|| {
            assert!(queue.push_all(0..black_box(ITEMS)).is_ok());
            assert_eq!(queue.drain().into_iter().count() as u64, ITEMS);
        });
    });
}
