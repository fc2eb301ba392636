//! Steps that block their thread, or compute for long, and the processes waiting meanwhile.

use crate::support::*;
use ganger_proc_api::Process;
use ganger_sched::{Builder, Scheduler};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3_600);

fn started(builder: Builder) -> Scheduler {
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

/// Creates a process whose only step blocks its thread until the test sends something through the
/// channel.
fn blocker(began: &Arc<AtomicUsize>) -> (impl Process, mpsc::Sender<()>) {
    let (release, released) = mpsc::channel();
    let released = Mutex::new(released);
    let began = Arc::clone(began);
    let process = process(move |_, _, out| {
        began.fetch_add(1, Ordering::SeqCst);
        released.lock().unwrap().recv()?;
        out.done(1);
        Ok(())
    });
    (process, release)
}

/// Creates a process that ends at once.
fn quick() -> impl Process {
    process(|_, _, out| {
        out.done(7);
        Ok(())
    })
}

// pins: G6
#[test]
fn others_run_while_a_step_blocks_the_only_worker() {
    let scheduler = started(Scheduler::builder().workers(1));
    let began = Arc::default();
    let (blocking, release) = blocker(&began);
    let blocked = scheduler.submit(blocking, "main", ()).unwrap();
    until("it blocks", || began.load(Ordering::SeqCst) == 1);
    for _ in 0..100 {
        assert_eq!(
            exit_number(scheduler.submit(quick(), "main", ()).unwrap()),
            7
        );
    }
    assert!(!blocked.is_finished());
    let stats = scheduler.stats();
    // On a slow machine a quick step may be taken for a long one, with more spares.
    assert_eq!((stats.workers, stats.spares >= 1), (1, true));
    assert!(stats.total.blocked_steps + stats.total.long_steps >= 1);
    let mut steps = scheduler.long_steps();
    steps.retain(|step| step.pid == blocked.pid());
    assert_eq!(steps.len(), 1, "{steps:?}");
    release.send(()).unwrap();
    assert_eq!(exit_number(blocked), 1);
}

// pins: G6
#[test]
fn others_run_while_a_step_computes_for_long() {
    let scheduler = started(Scheduler::builder().workers(1));
    let (may_end, began) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let long = {
        let (may_end, began) = (Arc::clone(&may_end), Arc::clone(&began));
        process(move |_, _, out| {
            began.store(true, Ordering::SeqCst);
            while !may_end.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
            out.done(1);
            Ok(())
        })
    };
    let long = scheduler.submit(long, "main", ()).unwrap();
    until("it computes", || began.load(Ordering::SeqCst));
    assert_eq!(
        exit_number(scheduler.submit(quick(), "main", ()).unwrap()),
        7
    );
    assert!(!long.is_finished());
    // The monitor counts it after the spare has begun.
    until("the step is counted", || {
        scheduler.stats().total.long_steps == 1
    });
    may_end.store(true, Ordering::SeqCst);
    assert_eq!(exit_number(long), 1);
}

// pins: G6
#[test]
fn what_a_blocked_step_has_woken_runs_elsewhere() {
    let scheduler = started(Scheduler::builder().workers(1));
    let woken = scheduler.submit(waiter(), "main", ()).unwrap();
    let (target, (release, released)) = (woken.pid(), mpsc::channel::<()>());
    let released = Mutex::new(released);
    let waker = process(move |ctx, _, out| {
        ctx.send(target, "hello", ())?;
        for _ in 0..100 {
            ctx.submit(quick(), "main", ())?;
        }
        released.lock().unwrap().recv()?;
        out.done(1);
        Ok(())
    });
    let waker = scheduler.submit(waker, "main", ()).unwrap();
    until("the others have ended", || scheduler.stats().ended() == 100);
    assert!(!waker.is_finished());
    release.send(()).unwrap();
    assert_eq!(exit_number(waker), 1);
}

// pins: G4, G6
#[test]
fn what_waits_behind_a_blocked_step_runs_though_the_spare_is_never_without_work() {
    let scheduler = started(Scheduler::builder().workers(1).max_spares(1));
    let ((release, released), has_run) = (mpsc::channel::<()>(), Arc::new(AtomicBool::new(false)));
    let (released, behind) = (Mutex::new(released), Arc::clone(&has_run));
    let blocking = process(move |ctx, _, out| {
        // The spare takes half: the first of the two.
        let until = Arc::clone(&behind);
        let endless = process(move |_, _, out| {
            if until.load(Ordering::SeqCst) {
                out.done(7);
            } else {
                out.step_again();
            }
            Ok(())
        });
        ctx.submit(endless, "main", ())?;
        let runs = Arc::clone(&behind);
        let last = process(move |_, _, out| {
            runs.store(true, Ordering::SeqCst);
            out.done(7);
            Ok(())
        });
        ctx.submit(last, "main", ())?;
        ctx.blocking(|| released.lock().unwrap().recv())?;
        out.done(1);
        Ok(())
    });
    let blocked = scheduler.submit(blocking, "main", ()).unwrap();
    until("what is behind it has run", || {
        has_run.load(Ordering::SeqCst)
    });
    assert!(!blocked.is_finished());
    release.send(()).unwrap();
    assert_eq!(exit_number(blocked), 1);
}

/// Announces a block of a step, by `block`, while the monitor would not notice by itself.
fn assert_believed(block: fn(&ganger_proc_api::Context, &mut dyn FnMut())) {
    let builder = Scheduler::builder().workers(1).step_limits(NEVER, NEVER);
    let scheduler = started(builder);
    let (release, released) = mpsc::channel::<()>();
    let (began, released) = (Arc::new(AtomicBool::new(false)), Mutex::new(released));
    let polite = {
        let began = Arc::clone(&began);
        process(move |ctx, _, out| {
            block(ctx, &mut || {
                began.store(true, Ordering::SeqCst);
                released.lock().unwrap().recv().unwrap();
            });
            out.done(1);
            Ok(())
        })
    };
    let polite = scheduler.submit(polite, "main", ()).unwrap();
    until("it blocks", || began.load(Ordering::SeqCst));
    assert_eq!(
        exit_number(scheduler.submit(quick(), "main", ()).unwrap()),
        7
    );
    assert!(!polite.is_finished());
    release.send(()).unwrap();
    assert_eq!(exit_number(polite), 1);
    assert_eq!(scheduler.stats().spares, 1);
}

// pins: G6
#[test]
fn a_step_that_says_that_it_blocks_is_believed() {
    assert_believed(|ctx, f| ctx.blocking(f));
}

// pins: G6
#[test]
fn a_step_that_says_so_twice_is_believed_when_the_inner_call_is_over() {
    assert_believed(|ctx, f| {
        ctx.blocking(|| {
            ctx.blocking(|| ());
            f();
        });
    });
}

// pins: G6, G8
#[test]
fn as_many_as_were_asked_for_work_when_the_blocked_are_back() {
    let scheduler = started(Scheduler::builder().workers(1));
    let began = Arc::default();
    let (blocked, releases): (Vec<_>, Vec<_>) = (0..5)
        .map(|_| {
            let (blocking, release) = blocker(&began);
            (scheduler.submit(blocking, "main", ()).unwrap(), release)
        })
        .unzip();
    until("all block", || began.load(Ordering::SeqCst) == 5);
    let answer = scheduler.submit(quick(), "main", ()).unwrap();
    assert_eq!(exit_number(answer), 7);
    assert_eq!(scheduler.stats().spares, 5);
    for release in releases {
        release.send(()).unwrap();
    }
    for blocked in blocked {
        assert_eq!(exit_number(blocked), 1);
    }
    // The blocked steps have ended, but their workers stand down a moment later.
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let crowd = |most: &Arc<AtomicUsize>| {
        let handles: Vec<_> = (0..200)
            .map(|_| {
                let (inside, most) = (Arc::clone(&inside), Arc::clone(most));
                let worker = process(move |_, _, out| {
                    let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    out.done(7);
                    Ok(())
                });
                scheduler.submit(worker, "main", ()).unwrap()
            })
            .collect();
        handles
            .into_iter()
            .for_each(|handle| assert_eq!(exit_number(handle), 7));
    };
    // Where everything is slow, a member of the crowd may block until a spare takes its worker's
    // place.
    until("all but one have stood down for good", || {
        most.store(0, Ordering::SeqCst);
        (0..10).for_each(|_| crowd(&most));
        most.load(Ordering::SeqCst) == 1
    });
}

// pins: G6
#[test]
fn there_are_no_more_spares_than_allowed_and_nothing_is_lost() {
    let scheduler = started(Scheduler::builder().workers(1).max_spares(2));
    let began = Arc::default();
    let (blocked, releases): (Vec<_>, Vec<_>) = (0..6)
        .map(|_| {
            let (blocking, release) = blocker(&began);
            (scheduler.submit(blocking, "main", ()).unwrap(), release)
        })
        .unzip();
    until("three block", || began.load(Ordering::SeqCst) == 3);
    let late = scheduler.submit(quick(), "main", ()).unwrap();
    // Gives a wrong fourth step the time to begin.
    thread::sleep(Duration::from_millis(50));
    assert_eq!(
        (began.load(Ordering::SeqCst), scheduler.stats().spares),
        (3, 2)
    );
    assert!(!late.is_finished());
    for release in releases {
        release.send(()).unwrap();
    }
    for blocked in blocked {
        assert_eq!(exit_number(blocked), 1);
    }
    assert_eq!(exit_number(late), 7);
    assert_eq!(scheduler.stats().spares, 2);
}

// pins: G6, G7
#[test]
fn spares_that_nobody_needs_end_and_others_come_when_they_are_needed() {
    let keep = Duration::from_millis(20);
    // The limit admits one spare: the next comes after its end.
    let builder = Scheduler::builder().workers(1).max_spares(1);
    let scheduler = started(builder.keep_spares(keep));
    for _ in 0..3 {
        let began = Arc::default();
        let (blocking, release) = blocker(&began);
        let blocked = scheduler.submit(blocking, "main", ()).unwrap();
        until("it blocks", || began.load(Ordering::SeqCst) == 1);
        assert_eq!(
            exit_number(scheduler.submit(quick(), "main", ()).unwrap()),
            7
        );
        assert_eq!(scheduler.stats().spares, 1);
        release.send(()).unwrap();
        assert_eq!(exit_number(blocked), 1);
        until("the spare has ended", || scheduler.stats().spares == 0);
    }
    assert_eq!(
        exit_number(scheduler.submit(quick(), "main", ()).unwrap()),
        7
    );
}

// pins: G6
#[test]
fn a_long_step_is_told_when_others_wait() {
    let builder = Scheduler::builder().workers(1).max_spares(0);
    let scheduler = started(builder.chain_limit(Duration::from_millis(1)));
    let began = Arc::new(AtomicBool::new(false));
    let long = {
        let began = Arc::clone(&began);
        process(move |ctx, _, out| {
            assert!(!ctx.should_yield(), "it has just begun");
            began.store(true, Ordering::SeqCst);
            while !ctx.should_yield() {
                std::hint::spin_loop();
            }
            out.done(1);
            Ok(())
        })
    };
    let long = scheduler.submit(long, "main", ()).unwrap();
    until("it computes", || began.load(Ordering::SeqCst));
    let other = scheduler.submit(quick(), "main", ()).unwrap();
    assert_eq!(exit_number(long), 1);
    assert_eq!(exit_number(other), 7);
}

// pins: D3, D4, G6
#[test]
fn a_stop_ends_spares_and_what_blocked_steps_leave() {
    let scheduler = started(Scheduler::builder().workers(2).thread_name("d3spare"));
    let began = Arc::default();
    let (blocked, releases): (Vec<_>, Vec<_>) = (0..4)
        .map(|_| {
            let (blocking, release) = blocker(&began);
            (scheduler.submit(blocking, "main", ()).unwrap(), release)
        })
        .unzip();
    until("all block", || began.load(Ordering::SeqCst) == 4);
    drop(scheduler.submit(waiter(), "main", ()).unwrap());
    let report = scheduler.stop(Duration::from_millis(500)).unwrap();
    assert_eq!(report.stuck.len(), 4, "{report:?}");
    assert_eq!(report.completed, 1, "{report:?}");
    drop(releases);
    for blocked in blocked {
        assert!(!matches!(
            exit(blocked),
            ganger_proc_api::ExitReason::Done(_)
        ));
    }
    #[cfg(target_os = "linux")]
    until("all threads have ended", || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.starts_with("d3spare")).count() == 0
    });
}

/// Its destructor waits until the sender is dropped.
struct Slow(Mutex<mpsc::Receiver<()>>);

impl Drop for Slow {
    fn drop(&mut self) {
        let _ = self.0.lock().unwrap().recv();
    }
}

// pins: G6
#[test]
fn others_run_while_the_destructor_of_a_result_blocks() {
    let scheduler = started(Scheduler::builder().workers(1));
    let (release, released) = mpsc::channel::<()>();
    let mut slow = Some(Slow(Mutex::new(released)));
    let process = process(move |_, events, out| {
        if events.next().is_some() {
            out.done(ganger_proc_api::Payload::any(slow.take()));
        }
        Ok(())
    });
    // Without a handle, the scheduler drops the result. If the handle were dropped after the end,
    // this thread would.
    let handle = scheduler.submit(process, "main", ()).unwrap();
    let pid = handle.pid();
    drop(handle);
    scheduler
        .send(ganger_proc_api::Envelope::new(None, pid, "end", ()))
        .unwrap();
    until("it has ended", || scheduler.stats().ended() == 1);
    assert_eq!(
        exit_number(scheduler.submit(quick(), "main", ()).unwrap()),
        7
    );
    drop(release);
}

// pins: G6
#[test]
fn many_short_ends_are_no_long_step() {
    const CROWD: u64 = 50_000;
    let scheduler = started(Scheduler::builder().workers(1));
    let submit = |_| scheduler.submit(waiter(), "main", ()).unwrap();
    let handles: Vec<_> = (0..CROWD).map(submit).collect();
    until("all wait", || {
        let stats = scheduler.stats();
        stats.total.steps == CROWD && stats.sleeping == 1
    });
    for handle in &handles {
        scheduler.terminate(handle.pid()).unwrap();
    }
    until("all have ended", || scheduler.stats().ended() == CROWD);
    assert_eq!(scheduler.stats().total.long_steps, 0);
}
