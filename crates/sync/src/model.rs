//! A test body for two ways to run: every interleaving under loom, a stress loop under `std`.
//!
//! `RUSTFLAGS="--cfg ganger_loom" cargo test --release` runs it under loom. Each model states its
//! preemption bound. `LOOM_MAX_PREEMPTIONS` overrides it for deeper runs. Each prints how many runs
//! there were: a model of several threads with a single one does not model their meeting.

/// The number of runs of a body under `std`.
pub const STRESS_RUNS: usize = 200;

/// Runs `body` under every interleaving with at most `preemptions` preemptions (under loom), or
/// [`STRESS_RUNS`] times with real threads.
///
/// # Panics
/// If `body` panics, under any interleaving.
pub fn check<F>(preemptions: usize, body: F)
where
    F: Fn() + Sync + Send + 'static,
{
    run(preemptions, body);
}

#[cfg(ganger_loom)]
fn run<F: Fn() + Sync + Send + 'static>(preemptions: usize, body: F) {
    let mut builder = loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = Some(preemptions);
    }
    // After how many runs loom looks at its time limit, each time.
    builder.checkpoint_interval = 1_000;
    let runs = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = std::sync::Arc::clone(&runs);
    builder.check(move || {
        // Ordering: Relaxed: loom runs its threads on a single thread of the system.
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        body();
    });
    // Ordering: Relaxed: loom runs its threads on a single thread of the system.
    println!("runs: {}", runs.load(std::sync::atomic::Ordering::Relaxed));
}

#[cfg(not(ganger_loom))]
fn run<F: Fn() + Sync + Send + 'static>(_preemptions: usize, body: F) {
    for _ in 0..STRESS_RUNS {
        body();
    }
}
