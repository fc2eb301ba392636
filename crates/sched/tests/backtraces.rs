//! The places of long steps, in reports.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(ganger_loom)
))]

#[path = "it/support/mod.rs"]
mod support;

use ganger_sched::{BuildError, Builder, LongStep, Scheduler};
use std::backtrace::Backtrace;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};
use support::on_event::{on_event, text_of};
use support::*;
use tracing::{Event, Level};

/// Each report, as text: all fields with their names.
static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn see(event: &Event<'_>) {
    let text = text_of(event);
    SEEN.lock().unwrap().push(text.clone());
    assert!(!text.contains("pid={panics|"), "on purpose: subscriber");
}

/// Starts a scheduler with one worker, whose reports the subscriber sees, a report for each long
/// step.
fn started(host: &str, set: impl Fn(Builder) -> Builder) -> Scheduler {
    static SUBSCRIBES: Once = Once::new();
    SUBSCRIBES.call_once(|| {
        tracing::subscriber::set_global_default(on_event(Level::WARN, see)).unwrap();
    });
    quiet_panics();
    let builder = Scheduler::builder().workers(1).host(host);
    let scheduler = set(builder.report_interval(Duration::ZERO))
        .build()
        .unwrap();
    scheduler.start().unwrap();
    scheduler
}

/// Runs a step that lasts until it has been reported. Returns the report, and the step's record.
fn long_step(scheduler: &Scheduler, lasts: fn(&AtomicBool)) -> (String, LongStep) {
    let (began, is_over) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let long = {
        let (began, is_over) = (Arc::clone(&began), Arc::clone(&is_over));
        process(move |_, _, out| {
            began.store(true, Ordering::SeqCst);
            lasts(&is_over);
            out.done(1);
            Ok(())
        })
    };
    let long = scheduler.submit(long, "long", ()).unwrap();
    until("it lasts", || began.load(Ordering::SeqCst));
    let waits = process(|_, _, out| {
        out.done(7);
        Ok(())
    });
    let waits = scheduler.submit(waits, "main", ()).unwrap();
    let pid = format!("pid={};", long.pid());
    let report = || {
        let seen = SEEN.lock().unwrap();
        seen.iter().find(|text| text.contains(&pid)).cloned()
    };
    until("it is reported", || report().is_some());
    is_over.store(true, Ordering::SeqCst);
    assert_eq!((exit_number(waits), exit_number(long)), (7, 1));
    let steps = scheduler.long_steps();
    (report().unwrap(), steps.last().unwrap().clone())
}

/// Runs steps as [`long_step`] does, until the report has a backtrace: a thread that gets no
/// processor in time has none.
fn with_backtrace(scheduler: &Scheduler, lasts: fn(&AtomicBool)) -> (String, LongStep) {
    let mut steps = (0..200).map(|_| long_step(scheduler, lasts));
    let found = steps.find(|(_, step)| step.backtrace.is_some());
    found.expect("a backtrace of one step at least")
}

#[inline(never)]
fn sleeps_on_purpose(is_over: &AtomicBool) {
    const SLEEP: Duration = Duration::from_millis(30);
    while !is_over.load(Ordering::SeqCst) {
        let began = Instant::now();
        thread::sleep(SLEEP);
        assert!(began.elapsed() >= SLEEP, "a signal ends no sleep");
    }
}

#[inline(never)]
fn computes_on_purpose(is_over: &AtomicBool) {
    let mut sum = 0_u64;
    while !is_over.load(Ordering::SeqCst) {
        sum = std::hint::black_box(sum.wrapping_mul(3) + 1);
    }
}

/// Makes a system call, which the standard library would restart.
#[inline(never)]
fn reads_on_purpose(is_over: &AtomicBool) {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    let (reader, mut writer) = std::io::pipe().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            writer.write_all(&[7]).unwrap();
        });
        let mut byte = 0_u8;
        // SAFETY: the buffer has room for a byte.
        let read = unsafe { libc::read(reader.as_raw_fd(), (&raw mut byte).cast(), 1) };
        assert_eq!((read, byte), (1, 7), "a signal ends no read");
    });
}

#[track_caller]
fn assert_tells(found: (String, LongStep), function: &str) {
    let (report, step) = found;
    let backtrace = step.backtrace.unwrap();
    assert!(backtrace.contains(function), "no {function} in {backtrace}");
    // The lines are known where the build has debug information.
    let own = Backtrace::force_capture().to_string();
    let knows_lines = |backtrace: &str| backtrace.contains("tests/backtraces.rs:");
    assert_eq!(knows_lines(&backtrace), knows_lines(&own), "{backtrace}");
    // A line is `function at file`, and the file has the names of this machine's folders.
    let functions = backtrace.lines().map(|it| it.split(" at ").next().unwrap());
    let functions: Vec<_> = functions.collect();
    for outside in ["ganger_sched::worker", "ganger_sched::run", "clone"] {
        let is_there = functions.iter().any(|it| it.contains(outside));
        assert!(!is_there, "{outside} in {backtrace}");
    }
    let field = format!(" backtrace={backtrace}");
    assert!(report.contains(&field), "no {field} in {report}");
}

// pins: G6
#[test]
fn a_step_that_sleeps_is_reported_with_the_function_that_does() {
    let scheduler = started("sleeps", |builder| builder.long_step_backtraces(true));
    let found = with_backtrace(&scheduler, sleeps_on_purpose);
    assert_tells(found, "sleeps_on_purpose");
}

// pins: G6
#[test]
fn a_step_that_computes_is_reported_with_the_function_that_does() {
    let scheduler = started("computes", |builder| builder.long_step_backtraces(true));
    let found = with_backtrace(&scheduler, computes_on_purpose);
    assert_tells(found, "computes_on_purpose");
}

// pins: G6
#[test]
fn a_step_that_reads_goes_on_to_read() {
    let scheduler = started("reads", |builder| builder.long_step_backtraces(true));
    let found = with_backtrace(&scheduler, reads_on_purpose);
    assert_tells(found, "reads_on_purpose");
}

// pins: G6
#[test]
fn there_is_no_backtrace_unless_it_is_asked_for() {
    let scheduler = started("off", |builder| builder);
    let (report, step) = long_step(&scheduler, sleeps_on_purpose);
    assert_eq!(step.backtrace, None);
    assert!(!report.contains("backtrace="), "{report}");
}

// pins: G6, P8
#[test]
fn a_subscriber_that_panics_at_a_report_does_not_cost_the_backtrace() {
    let scheduler = started("panics", |builder| builder.long_step_backtraces(true));
    let found = with_backtrace(&scheduler, sleeps_on_purpose);
    assert_tells(found, "sleeps_on_purpose");
    assert_eq!(scheduler.stats().total.panics, 0);
}

/// Has the program ignore the signal.
fn ignore(signal: i32) {
    // SAFETY: installs no handler.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

fn with_signal(signal: i32) -> Builder {
    let builder = Scheduler::builder().long_step_backtraces(true);
    builder.backtrace_signal(signal)
}

// pins: G6
#[test]
fn a_signal_that_is_somebody_elses_is_refused() {
    let signal = libc::SIGRTMIN() + 1;
    ignore(signal);
    let error = with_signal(signal).build().unwrap_err();
    assert!(matches!(error, BuildError::SignalTaken { signal: it } if it == signal));
    let error = with_signal(libc::SIGUSR1).build().unwrap_err();
    assert!(matches!(error, BuildError::OutOfRange { .. }));
    // Several schedulers share a signal.
    let free = libc::SIGRTMIN() + 2;
    let built: Vec<_> = (0..3).map(|_| with_signal(free).build()).collect();
    assert!(built.iter().all(Result::is_ok));
}

// pins: G6
#[test]
fn a_signal_that_loses_its_handler_is_not_sent() {
    let signal = libc::SIGRTMIN() + 3;
    let scheduler = started("replaced", |builder| {
        builder.long_step_backtraces(true).backtrace_signal(signal)
    });
    let _ = with_backtrace(&scheduler, sleeps_on_purpose);
    // With the default action the signal would end the program.
    // SAFETY: installs no handler.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    let (_, step) = long_step(&scheduler, sleeps_on_purpose);
    assert_eq!(step.backtrace, None);
}
