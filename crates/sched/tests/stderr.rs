//! The output of a program without a subscriber on its standard error stream. The program is this
//! test program, begun again.
#![cfg(not(ganger_loom))]

use ganger_proc_api::process_fn;
use ganger_sched::{Builder, Scheduler};
use std::env;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// The name of the program to run.
const PROGRAM: &str = "GANGER_TEST_PROGRAM";

/// Returns the standard error stream of the test `name` when it is the program.
fn stderr_of(name: &str) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env(PROGRAM, name).env("RUST_BACKTRACE", "0");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Calls `run` in the program; otherwise returns the program's output.
fn written(name: &'static str, run: fn()) -> Option<String> {
    match env::var(PROGRAM) {
        Ok(program) if program == name => {
            run();
            None
        }
        _ => Some(stderr_of(name)),
    }
}

type Set = fn(Builder) -> Builder;

/// Runs processes that fail, or panic, in turn.
fn run(set: Set, panic: &[bool]) {
    let scheduler = set(Scheduler::builder().workers(1)).start().unwrap();
    for &panics in panic {
        let process = process_fn(move |_, _, _| {
            assert!(!panics, "on purpose: step");
            Err("no disk".into())
        });
        drop(scheduler.spawn(process));
        while scheduler.stats().live > 0 {
            thread::yield_now();
        }
    }
    scheduler.stop(Duration::from_secs(60)).unwrap();
}

fn lines(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| line.starts_with("ganger: "));
    lines.collect()
}

// pins: F2
#[test]
fn the_first_failure_is_a_line_and_the_stop_counts_the_rest() {
    let name = "the_first_failure_is_a_line_and_the_stop_counts_the_rest";
    let Some(text) = written(name, || run(|it| it, &[false, true])) else {
        return;
    };
    // On a slow machine the second comes a second later, and has a line of its own.
    let lines = lines(&text);
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains(" (stderr::run::"), "{text}");
    assert!(
        lines[0].ends_with(") failed, and no process monitors it: no disk"),
        "{text}"
    );
    let rest = "ganger: failures that were not reported: 1";
    assert!(lines[1] == rest || lines[1].contains("panicked"), "{text}");
}

// pins: F2
#[test]
fn the_line_of_a_panic_leaves_the_message_to_the_hook() {
    let name = "the_line_of_a_panic_leaves_the_message_to_the_hook";
    let Some(text) = written(name, || run(|it| it, &[true])) else {
        return;
    };
    let lines = lines(&text);
    assert_eq!(lines.len(), 1, "{text}");
    let end = ") panicked, and no process monitors it; its panic is above";
    assert!(lines[0].ends_with(end), "{text}");
    assert_eq!(text.matches("on purpose: step").count(), 1, "{text}");
}

// pins: F2
#[test]
fn a_quiet_scheduler_writes_nothing() {
    let name = "a_quiet_scheduler_writes_nothing";
    let Some(text) = written(name, || run(Builder::quiet_failures, &[false, true])) else {
        return;
    };
    assert!(!text.contains("ganger: "), "{text}");
}
