//! Steps that announced a block, so their workers were replaced, and then compute for long. The
//! clock stands still until the test sets it.
//!
//! No worker has a thread here, so the clock alone says how long a step has computed.

use super::Hands;
use crate::ProcessHandle;
use crate::Scheduler;
use crate::blocking::monitor::Monitor;
use crate::config::Config;
use crate::noop_process::NoopProcess;
use crate::reports::long_steps::{LongStep, LongStepKind, NoticedStep};
use crate::runtime::shared::Shared;
use crate::runtime::worker_slots::WorkerSlots;
use ganger_proc_api::Pid;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

const MILLI: Duration = Duration::from_millis(1);

/// Returns the number of looks, a millisecond apart, up to just before the limit.
fn almost() -> u32 {
    let limit = Config::default().long_step.as_millis();
    u32::try_from(limit).unwrap() - 1
}

/// A scheduler with a worker and another worker that waits like a spare, both without threads; and
/// with a waiting process.
struct Bench {
    shared: Arc<Shared>,
    now: Cell<Duration>,
    _waiting: ProcessHandle,
    scheduler: Scheduler,
}

impl Bench {
    fn new() -> Self {
        let scheduler = Scheduler::builder().workers(2).build().unwrap();
        let shared = Arc::clone(&scheduler.shared);
        shared.worker_slots.mark_spare(1);
        Self {
            now: Cell::new(Duration::from_secs(1)),
            _waiting: scheduler.submit(NoopProcess, "waits", ()).unwrap(),
            shared,
            scheduler,
        }
    }

    fn worker_slots(&self) -> &WorkerSlots {
        &self.shared.worker_slots
    }

    fn monitor(&self) -> Monitor<'_, Hands<'_>> {
        Monitor::new(&self.shared, Hands(&self.now))
    }

    /// Begins a turn of the process with this number, and has the monitor see it.
    fn begin(
        &self,
        monitor: &mut Monitor<'_, Hands<'_>>,
        id: u64,
    ) -> crate::runtime::turns::Running<'_> {
        self.worker_slots().set_looking(0, false);
        self.shared.counters.of(Some(0)).turns.bump();
        let pid = Pid::new(self.shared.host, id);
        let running = self.shared.census.turns.begin(Some(0), pid);
        monitor.look();
        running
    }

    /// Looks `times` times, a millisecond apart.
    fn look(&self, monitor: &mut Monitor<'_, Hands<'_>>, times: u32) {
        for _ in 0..times {
            self.now.set(self.now.get() + MILLI);
            monitor.look();
        }
    }

    fn reported(&self) -> Vec<LongStep> {
        self.scheduler.long_steps()
    }
}

/// Announces a block in a step, whose worker is replaced, and blocks for long.
fn blocked(bench: &Bench, monitor: &mut Monitor<'_, Hands<'_>>) {
    let _announced = bench.worker_slots().announce(0);
    assert!(bench.shared.replace_worker(0, None));
    bench.look(monitor, 100);
    assert_eq!(bench.reported(), []);
}

// pins: G6
#[test]
fn a_step_that_computes_after_it_has_said_that_it_blocks_is_reported_once() {
    let bench = Bench::new();
    let mut monitor = bench.monitor();
    let running = bench.begin(&mut monitor, 7);
    blocked(&bench, &mut monitor);
    // The first look sees the end of the block.
    bench.look(&mut monitor, 1 + almost());
    assert_eq!(bench.reported(), []);
    bench.look(&mut monitor, 1);
    let reported = bench.reported();
    assert_eq!(reported.len(), 1);
    let step = &reported[0];
    assert_eq!((step.pid.id(), step.worker), (7, 0));
    assert_eq!(step.kind, LongStepKind::Computing);
    assert_eq!(step.lasted, MILLI * (100 + 1 + almost() + 1));
    assert!(!step.is_over);
    bench.look(&mut monitor, 100);
    assert_eq!(bench.reported(), reported);
    assert_eq!(bench.scheduler.stats().total.long_steps, 1);
    // The next turn is another.
    drop(running);
    bench.shared.reporting.long_steps.end(0);
    let _running = bench.begin(&mut monitor, 8);
    bench.look(&mut monitor, 1 + almost());
    let pids: Vec<_> = bench.reported().iter().map(|step| step.pid.id()).collect();
    assert_eq!(pids, [7, 8]);
}

/// Allows for a subscriber that takes its time, in a scheduler that may have run for days.
// pins: G6
#[test]
fn a_thread_that_is_kept_before_its_first_turn_is_watched_from_the_first_look() {
    let bench = Bench::new();
    let mut monitor = bench.monitor();
    bench.worker_slots().set_looking(0, false);
    monitor.look();
    bench.look(&mut monitor, almost());
    assert!(!bench.worker_slots().is_replaced(0));
    bench.look(&mut monitor, 10);
    assert!(bench.worker_slots().is_replaced(0), "it is watched");
}

// pins: G6
#[test]
fn what_a_step_does_while_it_is_about_to_block_is_not_reported() {
    let bench = Bench::new();
    let mut monitor = bench.monitor();
    let _running = bench.begin(&mut monitor, 7);
    blocked(&bench, &mut monitor);
    for _ in 0..10 {
        bench.look(&mut monitor, almost());
        // Between two looks.
        drop(bench.worker_slots().announce(0));
    }
    assert_eq!(bench.reported(), []);
}

// pins: G6
#[test]
fn a_step_that_keeps_nobody_waiting_is_not_reported() {
    let bench = Bench::new();
    let mut monitor = bench.monitor();
    let _running = bench.begin(&mut monitor, 7);
    blocked(&bench, &mut monitor);
    // The monitor sees the end of the block.
    bench.look(&mut monitor, 1);
    let token = bench.shared.queues.global.pop().unwrap();
    bench.look(&mut monitor, 100);
    assert_eq!(bench.reported(), []);
    bench.shared.queues.global.push(token);
    bench.look(&mut monitor, 1);
    assert_eq!(bench.reported().len(), 1);
}

// pins: G6
#[test]
fn a_step_that_has_been_reported_as_blocked_is_not_reported_again() {
    let bench = Bench::new();
    let mut monitor = bench.monitor();
    let _running = bench.begin(&mut monitor, 7);
    {
        let _announced = bench.worker_slots().announce(0);
        bench.look(&mut monitor, 1);
    }
    let kinds = || -> Vec<_> { bench.reported().iter().map(|step| step.kind).collect() };
    assert_eq!(kinds(), [LongStepKind::Blocked]);
    bench.look(&mut monitor, 100);
    assert_eq!(kinds(), [LongStepKind::Blocked]);
}

/// Lets the monitor decide to replace a worker in a turn, and do so in the next turn, which then
/// computes for long itself.
// pins: G6
#[test]
fn what_was_open_is_over_with_the_turn_that_its_worker_sees() {
    let bench = Bench::new();
    let mut monitor = bench.monitor();
    let running = bench.begin(&mut monitor, 7);
    let step = LongStep {
        pid: Pid::new(bench.shared.host, 7),
        method: None,
        worker: 0,
        kind: LongStepKind::Blocked,
        is_announced: false,
        lasted: MILLI,
        is_over: false,
        backtrace: None,
    };
    drop(running);
    let running = bench.begin(&mut monitor, 8);
    let noticed = NoticedStep { turn: 1, step };
    assert!(bench.shared.replace_worker(0, Some(noticed)));
    bench.look(&mut monitor, 2 * almost());
    drop(running);
    // As the worker does when it retires.
    bench.shared.reporting.long_steps.end(0);
    let reported = bench.reported();
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(reported.iter().all(|step| step.is_over), "{reported:?}");
}

/// Checks that the time in which a worker looks for work does not count as a turn's.
// pins: G6
#[test]
fn a_turn_begins_after_its_worker_has_looked() {
    let bench = Bench::new();
    let mut monitor = bench.monitor();
    drop(bench.begin(&mut monitor, 7));
    bench.worker_slots().set_looking(0, true);
    bench.look(&mut monitor, 3 * almost());
    // The worker has found a process, and not begun its turn.
    bench.worker_slots().set_looking(0, false);
    bench.look(&mut monitor, almost());
    assert!(!bench.worker_slots().is_replaced(0));
    bench.look(&mut monitor, almost());
    assert!(bench.worker_slots().is_replaced(0));
}
