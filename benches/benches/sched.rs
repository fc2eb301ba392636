//! The scheduler, with two workers, from the side of its users. Each benchmark is a small version
//! of a workload that a scheduler is judged by; times are for one process, step, round trip,
//! message or command.

use criterion::{BenchmarkId, Criterion, Throughput};
use ganger_benches::{Asker, Consumer, ECHO, Gate, Hit, Producer, Stepper, echo, serve};
use ganger_proc_api::BoxError;
use ganger_sched::Scheduler;
use std::sync::Arc;
use std::time::Duration;

type Outcome = Result<(), BoxError>;

fn main() -> Outcome {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let scheduler = Scheduler::builder().workers(2).build()?;
    scheduler.register(ECHO, "echo", echo)?;
    scheduler.start()?;
    spawn(&mut criterion, &scheduler);
    steps(&mut criterion, &scheduler);
    ping_pong(&mut criterion, &scheduler);
    fan_in(&mut criterion, &scheduler);
    command(&mut criterion, &scheduler);
    criterion.final_summary();
    let report = scheduler.stop(Duration::from_secs(5));
    assert_eq!(report.stuck, [], "every process has ended");
    Ok(())
}

/// Runs `submit` with a gate of that many hits, and waits for them; reports the time for one of
/// `elements`.
fn bench(
    criterion: &mut Criterion,
    group: &str,
    parameter: &str,
    elements: u64,
    hits: usize,
    submit: impl Fn(&Arc<Gate>) -> Outcome,
) {
    let mut group = criterion.benchmark_group(group);
    group.throughput(Throughput::Elements(elements));
    group.bench_function(BenchmarkId::from_parameter(parameter), |bencher| {
        bencher.iter(|| {
            let gate = Gate::new(hits);
            submit(&gate).expect("the scheduler takes it");
            gate.wait();
        });
    });
}

/// Processes that the main thread submits; each runs once.
fn spawn(criterion: &mut Criterion, scheduler: &Scheduler) {
    const PROCESSES: u64 = 10_000;
    bench(
        criterion,
        "sched/spawn_external",
        "10000",
        PROCESSES,
        10_000,
        |gate| {
            for _ in 0..PROCESSES {
                drop(scheduler.submit(Hit(Arc::clone(gate)), "main", ())?);
            }
            Ok(())
        },
    );
}

/// One process, and a hundred, that continue.
fn steps(criterion: &mut Criterion, scheduler: &Scheduler) {
    const STEPS: u64 = 10_000;
    for (processes, left) in [(1, 10_000), (100, 100)] {
        let name = processes.to_string();
        bench(
            criterion,
            "sched/continue",
            &name,
            STEPS,
            processes,
            |gate| {
                for _ in 0..processes {
                    let gate = Arc::clone(gate);
                    drop(scheduler.submit(Stepper { left, gate }, "main", ())?);
                }
                Ok(())
            },
        );
    }
}

/// One pair, and a hundred at once; by address and by PID.
fn ping_pong(criterion: &mut Criterion, scheduler: &Scheduler) {
    const ROUND_TRIPS: u64 = 2_000;
    for (name, by_address) in [("by_address", true), ("by_pid", false)] {
        for (pairs, each) in [(1, 2_000), (100, 20)] {
            let name = format!("{name}/{pairs}");
            bench(
                criterion,
                "sched/ping_pong",
                &name,
                ROUND_TRIPS,
                2 * pairs,
                |gate| (0..pairs).try_for_each(|_| serve(scheduler, by_address, each, gate)),
            );
        }
    }
}

/// Ten producers, one consumer.
fn fan_in(criterion: &mut Criterion, scheduler: &Scheduler) {
    const PRODUCERS: u64 = 10;
    bench(criterion, "sched/fan_in", "10", 10_000, 1, |gate| {
        let consumer = Consumer {
            left: 10_000,
            gate: Arc::clone(gate),
        };
        let consumer = scheduler.submit(consumer, "main", ())?;
        for _ in 0..PRODUCERS {
            let consumer = consumer.address().clone();
            drop(scheduler.submit(
                Producer {
                    messages: 1_000,
                    consumer,
                },
                "main",
                (),
            )?);
        }
        Ok(())
    });
}

/// Commands whose handler answers before it returns.
fn command(criterion: &mut Criterion, scheduler: &Scheduler) {
    const COMMANDS: u64 = 10_000;
    bench(criterion, "sched/command", "inline", COMMANDS, 1, |gate| {
        let asker = Asker {
            left: COMMANDS,
            gate: Arc::clone(gate),
        };
        drop(scheduler.submit(asker, "main", ())?);
        Ok(())
    });
}
