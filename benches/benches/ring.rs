//! The flight recorder's ring: what an event costs the worker that records, and what a copy takes.

use criterion::{Criterion, Throughput};
use ganger_ring::event::{Event, Pick, WORDS};
use ganger_ring::ring;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Larger than the caches of a core.
const BYTES: usize = 16 << 20;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    push(&mut criterion);
    snapshot(&mut criterion);
    criterion.final_summary();
}

fn event(process: u64) -> Event {
    Event::TurnBegins {
        process,
        name: 7,
        pick: Pick::Local,
    }
}

/// An event, into a ring that fits a cache and into a large one; and with a clock read for each.
fn push(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ring/push");
    for (name, bytes) in [("16_KiB", 16 << 10), ("16_MiB", BYTES)] {
        let (writer, _reader) = ring::<WORDS>(bytes);
        let mut number = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                number += 1;
                writer.push(event(black_box(number)).record(number));
            });
        });
    }
    let (writer, _reader) = ring::<WORDS>(BYTES);
    let begin = Instant::now();
    group.bench_function("16_MiB_with_clock", |bencher| {
        bencher.iter(|| {
            let at = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
            writer.push(event(black_box(5)).record(at));
        });
    });
}

/// A copy of a full ring of 16 MiB, with nothing written meanwhile.
fn snapshot(criterion: &mut Criterion) {
    let (writer, reader) = ring::<WORDS>(BYTES);
    for number in 0..reader.slots() as u64 {
        writer.push(event(number).record(number));
    }
    let mut group = criterion.benchmark_group("ring/snapshot");
    group.throughput(Throughput::Bytes(BYTES as u64));
    group.bench_function("16_MiB", |bencher| bencher.iter(|| reader.snapshot()));
}
