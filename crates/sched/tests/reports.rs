//! The reports of long steps, by a subscriber for all warnings.
#![cfg(not(ganger_loom))]

#[path = "it/support/mod.rs"]
mod support;

use ganger_proc_api::Process;
use ganger_sched::{Builder, LongStepKind, ProcessHandle, Scheduler};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, mpsc};
use std::thread;
use std::time::Duration;
use support::on_event::{on_event, text_of};
use support::*;
use tracing::{Event, Level};

/// Every warning and every report of a long step, as text: the level, and all fields with their
/// names.
static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The lock of the step of the test with the host `held`, which the subscriber waits for.
static HELD: Mutex<()> = Mutex::new(());

fn see(event: &Event<'_>) {
    let text = text_of(event);
    if *event.metadata().level() > Level::WARN && !text.contains("keeps others waiting") {
        return;
    }
    if text.contains("pid={held|") {
        drop(HELD.lock());
    }
    SEEN.lock().unwrap().push(text.clone());
    assert!(!text.contains("pid={panics|"), "on purpose: subscriber");
}

/// Returns the events with `part` in their texts.
fn seen(part: &str) -> Vec<String> {
    let seen = SEEN.lock().unwrap();
    seen.iter()
        .filter(|text| text.contains(part))
        .cloned()
        .collect()
}

/// Returns the reports of steps of the host's processes, without quick steps: on a busy machine a
/// quick step may last for longer than a step should.
fn reports(host: &str) -> Vec<String> {
    let mut reports = seen(&format!("pid={{{host}|"));
    reports.retain(|report| !report.contains("method=quick"));
    reports
}

/// Starts a scheduler with one worker, whose events the subscriber sees.
fn started(host: &str, set: impl Fn(Builder) -> Builder) -> Scheduler {
    static SUBSCRIBES: Once = Once::new();
    SUBSCRIBES.call_once(|| {
        tracing::subscriber::set_global_default(on_event(Level::DEBUG, see)).unwrap();
    });
    quiet_panics();
    let builder = set(Scheduler::builder().workers(1).host(host));
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

/// Submits a process whose only step calls `first`, and then blocks its thread until it is
/// released.
fn block(
    scheduler: &Scheduler,
    method: &'static str,
    first: impl Fn() -> Option<std::sync::MutexGuard<'static, ()>> + Send + 'static,
) -> (ProcessHandle, mpsc::Sender<()>) {
    let (release, released) = mpsc::channel();
    let began = Arc::new(AtomicBool::new(false));
    let released = Mutex::new(released);
    let blocking = {
        let began = Arc::clone(&began);
        process(move |_, _, out| {
            let _held = first();
            began.store(true, Ordering::SeqCst);
            released.lock().unwrap().recv()?;
            out.done(1);
            Ok(())
        })
    };
    let handle = scheduler.submit(blocking, method, ()).unwrap();
    until("it blocks", || began.load(Ordering::SeqCst));
    (handle, release)
}

fn end((handle, release): (ProcessHandle, mpsc::Sender<()>)) {
    release.send(()).unwrap();
    assert_eq!(exit_number(handle), 1);
}

/// Creates a process that ends at once.
fn quick() -> impl Process {
    process(|_, _, out| {
        out.done(7);
        Ok(())
    })
}

#[track_caller]
fn assert_others_run(scheduler: &Scheduler) {
    let quick = scheduler.submit(quick(), "quick", ()).unwrap();
    assert_eq!(exit_number(quick), 7);
}

// pins: G6
#[test]
fn each_step_is_reported_while_it_lasts_and_once() {
    let host = "reported";
    // New threads each time: a newly started spare reports, too.
    let scheduler = started(host, |builder| {
        let builder = builder.report_interval(Duration::ZERO);
        builder.keep_spares(Duration::from_micros(1))
    });
    for nth in 1..=20 {
        let blocked = block(&scheduler, "main", || None);
        assert_others_run(&scheduler);
        let pid = format!("pid={}", blocked.0.pid());
        until("it is reported", || !seen(&pid).is_empty());
        let report = seen(&pid).swap_remove(0);
        for field in ["method=main", "worker=", "lasted_us=", "suppressed=0"] {
            assert!(report.contains(field), "no {field} in {report}");
        }
        end(blocked);
        assert_eq!(reports(host).len(), nth);
        until("all but one have left", || scheduler.stats().spares == 0);
    }
}

/// Submits a process that starts two busy processes, and then calls `step`. The two run until its
/// end. The step announces a block, so its worker is relieved at once. The two keep the spare busy.
fn beside_a_crowd(
    scheduler: &Scheduler,
    method: &'static str,
    step: impl Fn(&ganger_proc_api::Context) + Send + 'static,
) -> ProcessHandle {
    let is_over = Arc::new(AtomicBool::new(false));
    let polite = process(move |ctx, _, out| {
        for _ in 0..2 {
            let is_over = Arc::clone(&is_over);
            let busy = process(move |_, _, out| {
                if is_over.load(Ordering::SeqCst) {
                    out.done(7);
                } else {
                    out.step_again();
                }
                Ok(())
            });
            ctx.submit(busy, "quick", ())?;
        }
        step(ctx);
        is_over.store(true, Ordering::SeqCst);
        out.done(1);
        Ok(())
    });
    scheduler.submit(polite, method, ()).unwrap()
}

// pins: G6
#[test]
fn a_step_that_computes_after_it_has_said_that_it_blocks_is_reported_while_it_lasts() {
    let host = "hog";
    let scheduler = started(host, |builder| builder.report_interval(Duration::ZERO));
    for nth in 1..=3 {
        let may_end = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&may_end);
        let hog = beside_a_crowd(&scheduler, "hogs", move |ctx| {
            ctx.blocking(|| ());
            while !ends.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
        });
        let pid = hog.pid();
        until("it is reported", || !seen(&format!("pid={pid}")).is_empty());
        let report = seen(&format!("pid={pid}")).swap_remove(0);
        for field in ["method=hogs", "what=\"takes long\"", "lasted_us="] {
            assert!(report.contains(field), "no {field} in {report}");
        }
        let step = || {
            let mut steps = scheduler.long_steps();
            steps.retain(|step| step.pid == pid);
            assert_eq!(steps.len(), 1, "{steps:?}");
            steps.swap_remove(0)
        };
        assert_eq!(step().kind, LongStepKind::Computing);
        assert!(!step().is_over);
        may_end.store(true, Ordering::SeqCst);
        assert_eq!(exit_number(hog), 1);
        until("it is over", || step().is_over);
        assert_eq!(reports(host).len(), nth);
    }
}

// pins: G6
#[test]
#[cfg(target_os = "linux")]
fn a_step_that_stays_where_it_may_block_is_not_reported_as_computing() {
    let scheduler = started("polite", |builder| builder.report_interval(Duration::ZERO));
    let polite = beside_a_crowd(&scheduler, "polite", move |ctx| {
        ctx.blocking(|| {
            // Ten times as long as a step may compute, by the monitor's clock.
            let computed = || {
                let account = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
                account.split(' ').next().unwrap().parse::<u64>().unwrap()
            };
            let begun = computed();
            while computed() < begun + 100_000_000 {}
        });
    });
    let pid = polite.pid();
    assert_eq!(exit_number(polite), 1);
    let mut steps = scheduler.long_steps();
    steps.retain(|step| step.pid == pid && step.kind == LongStepKind::Computing);
    assert_eq!(steps, []);
    let mut told = seen(&format!("pid={pid}"));
    told.retain(|report| report.contains("takes long"));
    assert_eq!(told, [] as [String; 0]);
}

// pins: G6
#[test]
fn a_step_that_has_announced_that_it_blocks_is_no_warning() {
    let scheduler = started("announced", |builder| builder);
    let (release, released) = mpsc::channel();
    let began = Arc::new(AtomicBool::new(false));
    let polite = {
        let (began, released) = (Arc::clone(&began), Mutex::new(released));
        process(move |ctx, _, out| {
            ctx.blocking(|| {
                began.store(true, Ordering::SeqCst);
                released.lock().unwrap().recv()
            })?;
            out.done(1);
            Ok(())
        })
    };
    let polite = scheduler.submit(polite, "main", ()).unwrap();
    until("it blocks", || began.load(Ordering::SeqCst));
    // These come after the announcement, so the monitor must take notice.
    assert_others_run(&scheduler);
    let pid = format!("pid={};", polite.pid());
    until("it is reported", || !seen(&pid).is_empty());
    let report = seen(&pid).swap_remove(0);
    assert!(report.starts_with("DEBUG "), "{report}");
    // The spare may report the step a moment before the monitor has added it.
    let steps = || scheduler.long_steps().into_iter();
    let step = || steps().find(|step| step.pid == polite.pid());
    until("it is among the last", || step().is_some());
    assert!(step().is_some_and(|step| step.is_announced), "{:?}", step());
    end((polite, release));

    // The announced step has used up no report of an unannounced step.
    let rude = block(&scheduler, "main", || None);
    assert_others_run(&scheduler);
    let pid = format!("pid={};", rude.0.pid());
    until("it is reported", || !seen(&pid).is_empty());
    let report = seen(&pid).swap_remove(0);
    assert!(report.starts_with("WARN "), "{report}");
    end(rude);
}

// pins: G6
#[test]
fn a_process_that_blocks_in_each_step_does_not_fill_the_log() {
    let hour = Duration::from_secs(3_600);
    let scheduler = started("crowd", |builder| builder.report_interval(hour));
    for _ in 0..20 {
        let blocked = block(&scheduler, "main", || None);
        assert_others_run(&scheduler);
        end(blocked);
    }
    let other = block(&scheduler, "other", || None);
    assert_others_run(&scheduler);
    end(other);
    until("all are counted", || {
        let total = scheduler.stats().total;
        total.blocked_steps + total.long_steps >= 21
    });
    until("both are reported", || reports("crowd").len() >= 2);
    assert_eq!(reports("crowd").len(), 2);
}

// pins: G6, P15
#[test]
fn the_last_steps_and_the_longest_can_be_looked_up() {
    let scheduler = started("looked", |builder| builder);
    assert_eq!(scheduler.long_steps(), []);
    assert_eq!(scheduler.stats().longest_step, Duration::ZERO);
    let blocked = block(&scheduler, "slow", || None);
    let pid = blocked.0.pid();
    assert_others_run(&scheduler);
    let slow = || {
        let mut steps = scheduler.long_steps();
        steps.retain(|step| step.pid == pid);
        steps
    };
    // The spare may run the other process before the monitor has written that the worker was
    // relieved.
    until("its worker is relieved", || scheduler.stats().relieved == 1);
    let step = slow().swap_remove(0);
    assert_eq!((step.pid, step.method), (pid, Some("slow".into())));
    assert!(!step.is_over);
    #[cfg(target_os = "linux")]
    assert_eq!(step.kind, LongStepKind::Blocked);
    let stats = scheduler.stats();
    assert_eq!((stats.relieved, stats.longest_step), (1, Duration::ZERO));
    // For the step to continue after the monitor has noticed it.
    thread::sleep(Duration::from_millis(5));
    end(blocked);
    until("its worker has stood down", || {
        scheduler.stats().relieved == 0
    });
    let over = slow();
    assert_eq!(over.len(), 1);
    assert!(over[0].is_over && over[0].lasted >= step.lasted + Duration::from_millis(5));
    assert_eq!(scheduler.stats().longest_step, over[0].lasted);
}

// pins: G6
#[test]
fn a_subscriber_that_waits_for_what_a_step_holds_keeps_nobody() {
    let scheduler = started("held", |builder| builder);
    let holder = block(&scheduler, "holds", || HELD.lock().ok());
    assert_others_run(&scheduler);
    // The monitor is still there, and so are threads for the places of others.
    let another = block(&scheduler, "blocks", || None);
    assert_others_run(&scheduler);
    assert!(reports("held").is_empty());
    end(holder);
    end(another);
    until("both are reported", || reports("held").len() == 2);
}

// pins: G6, P8
#[test]
fn a_subscriber_that_panics_at_a_report_costs_nothing() {
    let scheduler = started("panics", |builder| builder.report_interval(Duration::ZERO));
    for nth in 1..=3 {
        let blocked = block(&scheduler, "main", || None);
        assert_others_run(&scheduler);
        end(blocked);
        until("it is reported", || reports("panics").len() == nth);
    }
    assert_eq!(scheduler.stats().total.panics, 0);
}

// pins: G6
#[test]
fn it_is_said_once_that_there_are_no_more_spares_until_there_are() {
    // This number tells the warnings of this test from other warnings.
    let spares = 2;
    let scheduler = started("exhausted", |builder| builder.max_spares(spares));
    for nth in 1..=2 {
        let blocked: Vec<_> = (0..=spares)
            .map(|_| block(&scheduler, "main", || None))
            .collect();
        let late = scheduler.submit(quick(), "main", ()).unwrap();
        let warnings = || seen("max_spares=2;").len();
        until("it is said", || warnings() == nth);
        // Gives a wrong warning the time to appear.
        thread::sleep(Duration::from_millis(50));
        assert_eq!(warnings(), nth);
        assert!(!late.is_finished());
        blocked.into_iter().for_each(end);
        assert_eq!(exit_number(late), 7);
        until("all have stood down", || scheduler.stats().relieved == 0);
    }
}
