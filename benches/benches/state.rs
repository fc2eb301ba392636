//! The state word of a process, without contention: its cost in a turn and in a wake-up.

use criterion::Criterion;
use ganger_sched::internal::measured::StateWord;
use std::hint::black_box;
use std::time::Duration;

/// A name, and a transition of the word, which returns whether it went as expected.
type Transition = (&'static str, fn(&StateWord) -> bool);

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let transitions: [Transition; 4] = [
        ("park_and_wake", StateWord::park_and_wake),
        ("requeue", StateWord::requeue),
        ("wake_while_running", StateWord::wake_while_running),
        ("wake_while_ready", StateWord::wake_while_ready),
    ];
    let mut group = criterion.benchmark_group("state");
    for (name, transition) in transitions {
        let word = StateWord::default();
        group.bench_function(name, |bencher| {
            bencher.iter(|| assert!(transition(black_box(&word))));
        });
    }
    group.finish();
    criterion.final_summary();
}
