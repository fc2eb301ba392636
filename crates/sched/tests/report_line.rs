//! The report, a line a period, on the standard error stream. The program is this test program,
//! begun again.
#![cfg(not(ganger_loom))]

use ganger_proc_api::process_fn;
use ganger_sched::{Builder, Scheduler};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, io, thread};

/// The name of the program to run.
const PROGRAM: &str = "GANGER_TEST_PROGRAM";

/// Runs the test `name` as a program, and returns its lines once they are enough. The program reads
/// its standard input to the end.
fn lines_of(name: &str, report: &str, enough: fn(&[String]) -> bool) -> Vec<String> {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env(PROGRAM, name).env("GANGER_REPORT", report);
    command.stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = Vec::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        lines.extend(line.ok().filter(|line| line.starts_with("ganger")));
        if enough(&lines) {
            break;
        }
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    lines
}

fn sum(lines: &[String], name: &str) -> u64 {
    lines.iter().map(|line| column(line, name)).sum()
}

/// Runs schedulers in the program until the other side has read enough.
fn run(sets: &[fn(Builder) -> Builder]) {
    let start = |set: &fn(Builder) -> Builder| {
        let builder = set(Scheduler::builder().workers(1));
        builder.quiet_failures().start().unwrap()
    };
    let schedulers: Vec<_> = sets.iter().map(start).collect();
    let ends = process_fn(|_, _, out| {
        out.done(());
        Ok(())
    });
    schedulers[0].spawn(ends).unwrap().wait();
    io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
    for scheduler in schedulers {
        scheduler.stop(Duration::from_secs(60)).unwrap();
    }
}

/// Returns the number in a column of a line.
fn column(line: &str, name: &str) -> u64 {
    let mut words = line.split(' ').filter_map(|it| it.split_once('='));
    let found = words.find(|(column, _)| *column == name);
    found
        .unwrap_or_else(|| panic!("{name} is not in {line}"))
        .1
        .parse()
        .unwrap()
}

// pins: V12
#[test]
fn the_environment_asks_for_lines_and_the_builder_decides() {
    let name = "the_environment_asks_for_lines_and_the_builder_decides";
    if env::var(PROGRAM).is_ok_and(|it| it == name) {
        let silent: fn(Builder) -> Builder = |it| it.host("silent").report_every(Duration::ZERO);
        run(&[|it| it.host("loud"), silent]);
        return;
    }
    let lines = lines_of(name, "3ms", |it| it.len() > 3 && sum(it, "ended") > 0);
    assert!(
        lines.iter().all(|it| it.starts_with("ganger loud ")),
        "{lines:?}"
    );
    assert_eq!((sum(&lines, "started"), sum(&lines, "ended")), (1, 1));
    assert_eq!(sum(&lines, "failed"), 0);
    assert!(
        lines.iter().all(|it| column(it, "workers") == 1),
        "{lines:?}"
    );
    assert_eq!(lines.last().map(|it| column(it, "live")), Some(0));
}

// pins: V12
#[test]
fn a_wrong_period_is_reported_once_and_the_builders_holds() {
    let name = "a_wrong_period_is_reported_once_and_the_builders_holds";
    if env::var(PROGRAM).is_ok_and(|it| it == name) {
        let of_builder: fn(Builder) -> Builder =
            |it| it.host("own").report_every(Duration::from_millis(3));
        run(&[|it| it.host("one"), |it| it.host("two"), of_builder]);
        return;
    }
    let lines = lines_of(name, "soon", |it| it.len() == 5);
    let wrong =
        "ganger: GANGER_REPORT=\"soon\" is not a period, and is ignored: write 1s, 500ms or 1m";
    assert_eq!(
        lines.iter().filter(|it| *it == wrong).count(),
        1,
        "{lines:?}"
    );
    assert_eq!(
        lines
            .iter()
            .filter(|it| it.starts_with("ganger own "))
            .count(),
        4,
        "{lines:?}"
    );
}

/// Returns whether a thread of this program has the reporter's name.
#[cfg(target_os = "linux")]
fn has_reporter() -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let mut names =
        tasks.filter_map(|it| std::fs::read_to_string(it.ok()?.path().join("comm")).ok());
    names.any(|name| name.trim_end() == "quiet-report")
}

// pins: V12
#[cfg(target_os = "linux")]
#[test]
fn the_thread_is_there_with_a_period_alone_and_ends_with_the_scheduler() {
    if env::var(PROGRAM).is_ok() {
        return;
    }
    let begin = Instant::now();
    let start = |period| {
        let builder = Scheduler::builder().workers(1).thread_name("quiet");
        builder.report_every(period).start().unwrap()
    };
    let without = start(Duration::ZERO);
    assert!(!has_reporter());
    drop(without);
    let with = start(Duration::from_secs(3_600));
    while !has_reporter() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no thread");
        thread::yield_now();
    }
    drop(with);
    while has_reporter() {
        assert!(
            begin.elapsed() < Duration::from_secs(120),
            "the thread stays"
        );
        thread::yield_now();
    }
}
