//! The cost of single acts of the scheduler on a single worker: a step, a send, a spawn, a command.
//! Times are for a single act. `cargo xtask bench --instructions` counts the instructions of the
//! same acts.

use criterion::Criterion;
use ganger_count::{Act, OneWorker};
use ganger_proc_api::BoxError;
use std::time::{Duration, Instant};

fn main() -> Result<(), BoxError> {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let mut group = criterion.benchmark_group("step");
    for act in Act::ALL.into_iter().filter(|act| act.is_scheduled()) {
        let worker = OneWorker::of(act)?;
        group.bench_function(act.name(), |bencher| {
            // Start and end are lost in the many rounds of a sample.
            bencher.iter_custom(|rounds| {
                let start = Instant::now();
                let done = worker.run(act, rounds);
                done.expect("the scheduler takes it");
                start.elapsed()
            });
        });
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
