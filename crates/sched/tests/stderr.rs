//! What a program without a subscriber is shown on its standard error stream. The program is this
//! one, begun again.
#![cfg(not(ganger_loom))]

use ganger_proc_api::process_fn;
use ganger_sched::{Builder, Scheduler};
use std::env;
use std::process::Command;
use std::time::Duration;

/// Which program is to be run.
const PROGRAM: &str = "GANGER_TEST_PROGRAM";

/// The standard error stream of the test `name` when it is the program.
fn stderr_of(name: &str) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    let output = command.env(PROGRAM, name).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// In the program calls `run`; otherwise returns what that writes.
fn written(name: &'static str, run: fn()) -> Option<String> {
    match env::var(PROGRAM) {
        Ok(program) if program == name => {
            run();
            None
        }
        _ => Some(stderr_of(name)),
    }
}

fn fail(set: impl FnOnce(Builder) -> Builder) {
    let scheduler = set(Scheduler::builder().workers(1)).start().unwrap();
    let failing = scheduler.spawn(process_fn(|_, _, _| Err("no disk".into())));
    let panics = scheduler.spawn(process_fn(|_, _, _| panic!("on purpose: step")));
    drop((failing, panics));
    while scheduler.stats().live > 0 {
        std::thread::yield_now();
    }
    scheduler.stop(Duration::from_secs(60)).unwrap();
}

// pins: F2
#[test]
fn the_first_failure_is_a_line_and_the_stop_counts_the_rest() {
    let name = "the_first_failure_is_a_line_and_the_stop_counts_the_rest";
    let Some(text) = written(name, || fail(|builder| builder)) else {
        return;
    };
    let lines: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("ganger: "))
        .collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains("stderr::fail<"), "{text}");
    // Either comes first.
    let has_failed = lines[0].ends_with(") has failed, and nothing watches it: no disk");
    let has_panicked =
        lines[0].ends_with(") has panicked, and nothing watches it; its panic is above");
    assert!(has_failed || has_panicked, "{text}");
    assert_eq!(
        lines[1],
        "ganger: there were 1 more failures that nothing was told of"
    );
    // The panic hook writes the message of a panic, and nothing else does.
    assert_eq!(text.matches("on purpose: step").count(), 1, "{text}");
}

// pins: F2
#[test]
fn a_quiet_scheduler_writes_nothing() {
    let name = "a_quiet_scheduler_writes_nothing";
    let Some(text) = written(name, || fail(Builder::quiet_failures)) else {
        return;
    };
    assert!(!text.contains("ganger: "), "{text}");
}
