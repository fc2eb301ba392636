//! The scheduler, with two workers, from the side of its users. Each benchmark is a small version
//! of a workload by which schedulers are judged; times are for a process, step, round trip, message
//! or command.

use criterion::{BenchmarkId, Criterion, Throughput};
use ganger_benches::whole::{Contestant, Ganger, Gate, job};
use std::time::Duration;

/// A part of a workload: its time.
type Timed = Result<Duration, job::Error>;

fn main() -> Result<(), job::Error> {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let ganger = Ganger::new(2, Gate::new())?;
    let mut bench = |group: &str, parameter: &str, elements: u64, run: &dyn Fn() -> Timed| {
        let mut group = criterion.benchmark_group(group);
        group.throughput(Throughput::Elements(elements));
        group.bench_function(BenchmarkId::from_parameter(parameter), |bencher| {
            bencher.iter_custom(|times| {
                let times = (0..times).map(|_| run().expect("the scheduler takes it"));
                times.sum()
            });
        });
    };
    // Processes that the main thread submits; each runs once.
    bench("sched/spawn_external", "10000", 10_000, &|| {
        ganger.spawn(10_000)
    });
    // A single process, and a hundred, that continue.
    bench("sched/continue", "1", 10_000, &|| ganger.yields(1, 10_000));
    bench("sched/continue", "100", 10_000, &|| ganger.yields(100, 100));
    // A single pair, and a hundred at once.
    for (pairs, each) in [(1, 2_000), (100, 20)] {
        bench(
            "sched/ping_pong",
            &format!("by_address/{pairs}"),
            2_000,
            &|| ganger.ping_pong(pairs, each),
        );
        bench(
            "sched/ping_pong",
            &format!("by_pid/{pairs}"),
            2_000,
            &|| ganger.ping_pong_by_pid(pairs, each),
        );
    }
    // Ten producers, a single consumer.
    bench("sched/fan_in", "10", 10_000, &|| ganger.fan_in(10, 1_000));
    // Commands whose handler answers before it returns, and commands that a process answers.
    bench("sched/command", "inline", 10_000, &|| {
        ganger.command_inline(10_000)
    });
    bench("sched/command", "asked", 10_000, &|| {
        ganger.command_asked(10_000)
    });
    criterion.final_summary();
    Ok(())
}
