//! The log of failed and forced processes, by a subscriber for all events.
#![cfg(not(ganger_loom))]

#[path = "it/support/mod.rs"]
mod support;

use ganger_proc_api::{
    BoxError, Command, CommandId, Context, Events, ExitReason, Lifecycle, Pid, Process, StepOutput,
    StepResult, UpgradeRequest,
};
use ganger_sched::{Builder, Scheduler};
use std::fmt;
use std::sync::{Mutex, Once};
use std::time::Duration;
use support::on_event::{on_event, text_of};
use support::*;
use tracing::{Event, Level};

/// Every event, as text: its level and all fields with their names.
static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn see(event: &Event<'_>) {
    SEEN.lock().unwrap().push(text_of(event));
}

/// Returns the events with all of these parts.
fn seen(parts: &[&str]) -> Vec<String> {
    let mut seen = SEEN.lock().unwrap().clone();
    seen.retain(|text| parts.iter().all(|part| text.contains(part)));
    seen
}

/// Starts a scheduler whose events the subscriber sees.
fn started(host: &str, set: impl Fn(Builder) -> Builder) -> Scheduler {
    static SUBSCRIBES: Once = Once::new();
    SUBSCRIBES.call_once(|| {
        tracing::subscriber::set_global_default(on_event(Level::TRACE, see)).unwrap();
    });
    quiet_panics();
    let builder = set(Scheduler::builder().workers(1).host(host));
    let scheduler = builder.build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

/// Returns the only event about the end of the process.
#[track_caller]
fn end_of(pid: Pid) -> String {
    let pid = format!("pid={pid};");
    let ended = || seen(&[&pid, "message=ended;"]);
    until("its end is logged", || !ended().is_empty());
    assert_eq!(ended().len(), 1);
    ended().swap_remove(0)
}

/// An error with a cause.
#[derive(Debug)]
struct Caused(&'static str, Option<BoxError>);

impl fmt::Display for Caused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Caused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.1.as_ref().map(|cause| &**cause as _)
    }
}

// pins: P8, F2
#[test]
fn a_process_that_fails_says_why_and_is_reported_when_its_handle_is_dropped() {
    type Step = fn(&mut StepOutput) -> StepResult;
    let failures: [(Step, &str); 4] = [
        (
            |_| Err("disk on fire".into()),
            "how=\"failed\"; reason=disk on fire;",
        ),
        (
            |_| {
                let cause = Caused("no such file", Some("disk on fire".into()));
                Err(Box::new(Caused("reading the list", Some(Box::new(cause)))))
            },
            "how=\"failed\"; reason=reading the list: no such file: disk on fire;",
        ),
        (
            |_| panic!("on purpose: step"),
            "how=\"panicked\"; reason=on purpose: step;",
        ),
        (
            |out| {
                out.upgrade(UpgradeRequest::factory("nobody", "main", ()));
                Ok(())
            },
            "how=\"upgrade failed\"; reason=no factory named \"nobody\" is registered;",
        ),
    ];
    for (step, text) in failures {
        // Each has its own: a scheduler has a line a second.
        let scheduler = started("failing", |builder| builder);
        let failing = process(move |_, _, out| step(out));
        let handle = scheduler.submit(failing, "fails", ()).unwrap();
        let failing = handle.pid();
        let event = end_of(failing);
        let start = format!("WARN message=ended; pid={failing}; method=fails;");
        assert_eq!(event, format!("{start} {text}"));
        until("it can be looked at", || handle.is_finished());
        drop(handle);
        let (_, reason) = text.split_once("; ").unwrap();
        let report = report_of(failing);
        assert!(report.contains(reason), "{report}");
    }
}

/// Returns the only report about the process.
#[track_caller]
fn report_of(pid: Pid) -> String {
    let pid = format!("pid={pid};");
    let reports = || seen(&[&pid, "no process monitors it"]);
    until("it is reported", || !reports().is_empty());
    assert_eq!(reports().len(), 1);
    let report = reports().swap_remove(0);
    assert!(report.starts_with("ERROR message=a process "), "{report}");
    report
}

// pins: F2
#[test]
fn a_failure_that_is_reported_is_no_warning_besides_and_the_stop_has_the_count() {
    let scheduler = started("counted", |builder| builder);
    let parent = process(|ctx: &Context, _, out| {
        for _ in 0..100 {
            // Without a handle.
            ctx.submit(process(|_, _, _| Err("no disk".into())), "child", ())?;
        }
        out.done(1);
        Ok(())
    });
    assert_eq!(
        exit_number(scheduler.submit(parent, "main", ()).unwrap()),
        1
    );
    until("all have failed", || scheduler.stats().total.failed == 100);
    scheduler.stop(Duration::from_secs(60)).unwrap();
    assert_eq!(seen(&["WARN", "{counted|"]), [] as [String; 0]);
    assert_eq!(seen(&["DEBUG", "{counted|", "how=\"failed\";"]).len(), 100);
    let reports = seen(&["ERROR", "{counted|", "failed, and no process monitors it"]);
    assert!(reports[0].contains("left_out=0;"), "{}", reports[0]);
    // On a slow machine the log has more than one line.
    let left_out = |text: &String| -> u64 {
        let (_, rest) = text.split_once("left_out=").unwrap();
        rest.split_once(';').unwrap().0.parse().unwrap()
    };
    let rest = seen(&["ERROR", "more failures were not reported"]);
    let counts = reports.iter().chain(&rest).map(left_out);
    assert_eq!(
        counts.sum::<u64>() + reports.len() as u64,
        100,
        "{reports:?} {rest:?}"
    );
}

// pins: P8
#[test]
fn a_process_that_ends_well_or_is_terminated_is_no_warning() {
    let scheduler = started("ending", |builder| builder);
    let quick = process(|_, _, out| {
        out.done(7);
        Ok(())
    });
    let event = end_of(scheduler.submit(quick, "main", ()).unwrap().pid());
    assert!(
        event.starts_with("DEBUG") && event.contains("how=\"done\""),
        "{event}"
    );
    let waiter = scheduler.submit(waiter(), "main", ()).unwrap();
    scheduler.terminate(waiter.pid()).unwrap();
    let event = end_of(waiter.pid());
    assert!(
        event.starts_with("DEBUG") && event.contains("how=\"terminated\""),
        "{event}"
    );
}

/// Panics in `close`, and again when it is dropped.
struct Bomb;

impl Process for Bomb {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.done(7);
        Ok(())
    }

    fn close(&mut self) {
        panic!("on purpose: close");
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose: drop");
    }
}

/// Panics in its hook.
struct Hook;

impl Lifecycle for Hook {
    fn on_complete(&self, _: Pid, _: &ExitReason) {
        panic!("on purpose: hook");
    }
}

// pins: P8
#[test]
fn a_contained_panic_is_logged_with_the_process_that_it_is_of() {
    let scheduler = started("panicking", |builder| builder.lifecycle(Hook));
    // A child, which never has a handle.
    let parent = process(|ctx: &Context, _, out| {
        ctx.submit(Bomb, "main", ())?;
        out.done(1);
        Ok(())
    });
    let parent = scheduler.submit(parent, "main", ()).unwrap();
    let pid = format!("pid={};", parent.pid());
    assert_eq!(exit_number(parent), 1);
    until("the child has ended", || scheduler.stats().total.done == 2);
    let mut panics = seen(&["ERROR", "pid={panicking|"]);
    panics.retain(|panic| !panic.contains(&pid));
    let about = |what: &str, text: &str| {
        let what = format!("what=\"{what}\";");
        let is_about = |panic: &&String| {
            panic.contains(&what) && panic.contains(&format!("on purpose: {text}"))
        };
        assert_eq!(
            panics.iter().filter(is_about).count(),
            1,
            "{what} in {panics:?}"
        );
    };
    about("close", "close");
    about("destructor", "drop");
    about("on_complete", "hook");
    assert_eq!(panics.len(), 3, "{panics:?}");
}

// pins: D4
#[test]
fn a_stop_names_the_first_processes_that_it_has_forced() {
    let scheduler = started("forcing", |builder| builder);
    let stubborn: Vec<_> = (0..10)
        .map(|_| {
            // Each process has its own, since the calls of one must not overlap.
            let calls = Calls::new();
            scheduler.submit(stubborn(&calls), "stays", ()).unwrap()
        })
        .collect();
    let report = scheduler.stop(Duration::ZERO).unwrap();
    assert_eq!(report.forced + report.stuck.len() as u64, 10);
    // No other test here forces a process.
    let warnings = seen(&["WARN", &format!("forced={};", report.forced)]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let named = |process: &&ganger_sched::ProcessHandle| {
        warnings[0].contains(&format!("{} stays", process.pid()))
    };
    // The warning leaves out the processes still to be closed.
    let ended = report.forced - report.closing;
    let expected = ended.min(8)..=8;
    assert!(
        expected.contains(&(stubborn.iter().filter(named).count() as u64)),
        "{}",
        warnings[0]
    );
}

#[test]
fn a_stop_that_forces_nobody_warns_of_nothing() {
    let scheduler = started("polite", |builder| builder);
    let waiting = scheduler.submit(waiter(), "main", ()).unwrap();
    let report = scheduler.stop(Duration::from_secs(60)).unwrap();
    assert_eq!((report.forced, report.completed), (0, 1));
    assert!(exit(waiting).is_done());
    assert_eq!(seen(&["WARN", "{polite|"]), [] as [String; 0]);
    assert_eq!(seen(&["WARN", "forced=0;"]), [] as [String; 0]);
}

/// Takes `left` steps, and ends in the next. Some of its steps have a command answered.
struct Spins {
    left: u32,
    asks_at_each: u32,
    has_command: bool,
}

impl Process for Spins {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        events.for_each(drop);
        if self.left == 0 {
            out.done(7);
            return Ok(());
        }
        self.left -= 1;
        if self.has_command && self.left.is_multiple_of(self.asks_at_each) {
            out.yield_command(Command::new(UNKNOWN, ()), 1);
        }
        out.step_again();
        Ok(())
    }
}

/// No handler has this id, so the answer is there at once.
const UNKNOWN: CommandId = CommandId::new(1);

// pins: P3
#[test]
fn a_process_that_goes_on_without_anything_to_do_is_warned_of_once() {
    let scheduler = started("spinning", |builder| builder);
    let warnings_of = |left, has_command| {
        let spins = Spins {
            left,
            asks_at_each: 5_000,
            has_command,
        };
        let spins = scheduler.submit(spins, "spins", ()).unwrap();
        let pid = format!("pid={};", spins.pid());
        assert_eq!(exit_number(spins), 7);
        seen(&["WARN", &pid, "goes on without an event"])
    };
    assert_eq!(warnings_of(9_000, false), [] as [String; 0]);
    assert_eq!(warnings_of(100_000, true), [] as [String; 0]);
    let warnings = warnings_of(100_000, false);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("method=spins;"), "{}", warnings[0]);
    assert!(warnings[0].contains("Spins\";"), "{}", warnings[0]);
}
