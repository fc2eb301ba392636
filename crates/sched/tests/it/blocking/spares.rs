//! The fate of relieved workers, of their processes, and of the threads in their places.

use crate::support::*;
use ganger_proc_api::{Context, Process};
use ganger_sched::{Builder, ProcessHandle, Scheduler};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// Longer than any test.
#[cfg(target_os = "linux")]
const NEVER: Duration = Duration::from_secs(3_600);

fn started(builder: Builder) -> Scheduler {
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

/// A process whose only step blocks its thread until it is released.
struct Blocked {
    handle: ProcessHandle,
    release: mpsc::Sender<()>,
}

impl Blocked {
    /// Starts such a process, and waits until its worker has been relieved. Once released, the step
    /// does `then` with its context.
    fn new(scheduler: &Scheduler, then: impl Fn(&Context) + Send + 'static) -> Self {
        let (release, released) = mpsc::channel();
        let began = Arc::new(AtomicBool::new(false));
        let released = Mutex::new(released);
        let blocking = {
            let began = Arc::clone(&began);
            process(move |ctx, _, out| {
                began.store(true, Ordering::SeqCst);
                released.lock().unwrap().recv()?;
                then(ctx);
                out.done(1);
                Ok(())
            })
        };
        let handle = scheduler.submit(blocking, "main", ()).unwrap();
        until("it blocks", || began.load(Ordering::SeqCst));
        assert_eq!(
            exit_number(scheduler.submit(quick(), "main", ()).unwrap()),
            7
        );
        Self { handle, release }
    }

    fn end(self) {
        self.release.send(()).unwrap();
        assert_eq!(exit_number(self.handle), 1);
    }
}

/// Creates a process that ends at once.
fn quick() -> impl Process {
    process(|_, _, out| {
        out.done(7);
        Ok(())
    })
}

/// Creates a process that steps again and again until it may end.
fn restless(may_end: &Arc<AtomicBool>) -> impl Process {
    let may_end = Arc::clone(may_end);
    process(move |_, _, out| {
        if may_end.load(Ordering::SeqCst) {
            out.done(1);
        } else {
            out.step_again();
        }
        Ok(())
    })
}

/// Counts the threads of this scheduler, and the sleeping threads among them.
#[cfg(target_os = "linux")]
fn threads(name: &str) -> (usize, usize) {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let accounts =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    let mut counts = (0, 0);
    for account in accounts {
        let (before, after) = account.rsplit_once(") ").unwrap();
        if before.contains(&format!("({name}-")) {
            counts.0 += 1;
            counts.1 += usize::from(after.starts_with('S'));
        }
    }
    counts
}

// pins: G4, G6
#[test]
fn what_a_relieved_worker_has_woken_runs_although_its_spare_never_rests() {
    let scheduler = started(Scheduler::builder().workers(1).max_spares(1));
    let has_run = Arc::new(AtomicBool::new(false));
    let last = Arc::clone(&has_run);
    // A process left in the deque of a thread off duty would wait there for as long as the spare
    // has other work.
    let blocked = Blocked::new(&scheduler, move |ctx| {
        let last = Arc::clone(&last);
        let woken = process(move |_, _, out| {
            last.store(true, Ordering::SeqCst);
            out.done(1);
            Ok(())
        });
        ctx.submit(woken, "main", ()).unwrap();
    });
    let restless = scheduler.submit(restless(&has_run), "main", ()).unwrap();
    until("the spare runs it", || scheduler.stats().total.steps > 10);
    blocked.end();
    assert_eq!(exit_number(restless), 1);
    assert!(has_run.load(Ordering::SeqCst));
}

// pins: G2, G6
#[test]
fn what_a_relieved_worker_has_woken_wakes_a_sleeper() {
    let builder = Scheduler::builder().workers(1);
    // The delay is long, for the monitor not to find the process first.
    let scheduler = started(builder.hand_off_delay(Duration::from_millis(2)));
    for nth in 0..20 {
        let blocked = Blocked::new(&scheduler, |ctx| {
            ctx.submit(quick(), "main", ()).unwrap();
        });
        until("the spare sleeps", || scheduler.stats().sleeping == 1);
        blocked.end();
        let ended = 3 * (nth + 1);
        until("what it has woken has run", || {
            scheduler.stats().ended() == ended
        });
    }
}

// pins: G6
#[test]
#[cfg(target_os = "linux")]
fn a_step_that_sleeps_is_noticed_by_that_alone() {
    let builder = Scheduler::builder().workers(1);
    let scheduler = started(builder.step_limits(Duration::from_millis(1), NEVER));
    Blocked::new(&scheduler, |_| ()).end();
    until("it is counted", || {
        let total = scheduler.stats().total;
        (total.blocked_steps, total.long_steps) == (1, 0)
    });
}

// pins: P15
#[test]
fn what_the_monitor_counts_is_in_no_workers_counts() {
    let scheduler = started(Scheduler::builder().workers(1));
    Blocked::new(&scheduler, |_| ()).end();
    until("it is counted", || {
        let total = scheduler.stats().total;
        total.blocked_steps + total.long_steps == 1
    });
    for worker in scheduler.worker_stats() {
        assert_eq!((worker.blocked_steps, worker.long_steps), (0, 0));
    }
}

// pins: G6
#[test]
fn a_surplus_thread_stays_for_as_long_as_it_was_told() {
    let builder = Scheduler::builder().workers(1);
    let scheduler = started(builder.keep_spares(Duration::from_secs(100)));
    Blocked::new(&scheduler, |_| ()).end();
    // Gives a wrong end the time to happen.
    thread::sleep(Duration::from_millis(500));
    assert_eq!(scheduler.stats().spares, 1);
}

// pins: D4, G6
#[test]
#[cfg(target_os = "linux")]
fn a_stop_wakes_threads_that_wait_to_be_needed() {
    let builder = Scheduler::builder().workers(1).keep_spares(NEVER);
    let scheduler = started(builder.thread_name("d4spare"));
    Blocked::new(&scheduler, |_| ()).end();
    // A worker, the spare and the monitor.
    until("all sleep", || threads("d4spare") == (3, 3));
    assert_eq!(scheduler.stop(PATIENCE).unwrap().stuck.len(), 0);
    until("all have ended", || threads("d4spare").0 == 0);
}

// pins: D4, G6
#[test]
fn what_a_relieved_worker_wakes_after_the_halt_ends() {
    for _ in 0..10 {
        let scheduler = started(Scheduler::builder().workers(1));
        let target = scheduler.submit(stubborn(&Calls::new()), "main", ());
        let target = target.unwrap();
        let pid = target.pid();
        let blocked = Blocked::new(&scheduler, move |ctx| {
            let _ = ctx.send(pid, "late", ());
        });
        let report = scheduler.stop(Duration::from_millis(1)).unwrap();
        assert_eq!(report.stuck.len(), 1, "{report:?}");
        blocked.release.send(()).unwrap();
        exit(blocked.handle);
        exit(target);
        assert_eq!(scheduler.stats().live, 0);
    }
}

// pins: G7
#[test]
#[cfg(target_os = "linux")]
fn the_monitor_looks_less_and_less_often_at_steps_that_keep_nobody_waiting() {
    let switches = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let mut folders = tasks.map(|task| task.unwrap().path());
        let monitor = folders.find(|task| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "g7look-monitor\n")
        });
        let status = std::fs::read_to_string(monitor?.join("status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary"));
        let count = line.unwrap().rsplit('\t').next().unwrap();
        Some(count.trim().parse::<u128>().unwrap())
    };
    let builder = Scheduler::builder().workers(1).thread_name("g7look");
    let scheduler = started(builder.hand_off_delay(Duration::from_micros(1)));
    let may_end = Arc::default();
    let restless = scheduler.submit(restless(&may_end), "main", ()).unwrap();
    until("it steps", || scheduler.stats().total.steps > 10);
    until("the monitor has its name", || switches().is_some());
    let (start, before) = (std::time::Instant::now(), switches().unwrap());
    thread::sleep(Duration::from_millis(300));
    let looks = switches().unwrap() - before;
    // Every 2 ms, and some at the beginning.
    let most = start.elapsed().as_millis() / 2 + 50;
    assert!(looks <= most, "{looks} looks, {most} allowed");
    may_end.store(true, Ordering::SeqCst);
    assert_eq!(exit_number(restless), 1);
}
