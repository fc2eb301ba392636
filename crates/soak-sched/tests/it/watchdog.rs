//! Soaks hang on purpose, in programs of their own. The watchdog must end them.

use ganger::Command;
use ganger::prelude::*;
use ganger::{CommandId, Completer};
use ganger_soak_sched::account::Account;
use ganger_soak_sched::round::Tally;
use ganger_soak_sched::{Options, Watch, soak};
use std::path::Path;
use std::process::{Command as Program, Output};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::{env, thread};

/// The path of the hanging program's summary; unset in the test itself.
const SUMMARY: &str = "GANGER_TEST_SOAK_SUMMARY";

const KEPT: CommandId = CommandId::new(256);

/// Waits for an answer, which never comes.
struct WaitsForEver;

impl Process for WaitsForEver {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if events.count() == 0 {
            out.yield_command(Command::new(KEPT, ()), 0);
        }
        Ok(())
    }
}

/// Stays in its step.
struct BlocksForEver(Receiver<()>);

impl Process for BlocksForEver {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        blocks_on_purpose(&self.0);
        out.done(());
        Ok(())
    }
}

#[inline(never)]
fn blocks_on_purpose(nobody_sends: &Receiver<()>) {
    let received = nobody_sends.recv();
    std::hint::black_box(&received);
}

/// Goes on and on.
struct NeverEnds;

impl Process for NeverEnds {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        thread::yield_now();
        out.step_again();
        Ok(())
    }
}

/// Runs a soak with a hanging round.
fn hang(patience: f64, round_limit: f64, round: fn(&Watch) -> Result<Tally, String>) {
    let options = Options {
        minutes: 1.0,
        seconds: None,
        seed: Some(7),
        patience,
        round_limit,
        leak: 0,
        json: env::var_os(SUMMARY).map(Into::into),
    };
    let result = soak(&options, &Arc::new(Watch::default()), |_, watch| {
        watch.begin("a round that hangs");
        round(watch)
    });
    panic!("a soak that hangs has come back: {result:?}");
}

fn stands_still(watch: &Watch) -> Result<Tally, String> {
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    let kept = Mutex::new(Vec::new());
    let keep = move |_: Command, completer: Completer| {
        kept.lock().unwrap().push(completer);
        Ok(())
    };
    scheduler.register(KEPT, "kept", keep).unwrap();
    scheduler.start().unwrap();
    watch.add(scheduler.downgrade(), &Arc::new(Account::default()));
    let (_nobody, receiver) = channel();
    let _waits = scheduler.submit(WaitsForEver, "waits", ()).unwrap();
    let _blocks = scheduler
        .submit(BlocksForEver(receiver), "blocks", ())
        .unwrap();
    waits_on_purpose(watch);
    Ok(Tally::default())
}

#[inline(never)]
fn waits_on_purpose(watch: &Watch) {
    watch.until("the answer that never comes", || false);
    std::hint::black_box(());
}

fn does_not_end(watch: &Watch) -> Result<Tally, String> {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    scheduler.start().unwrap();
    watch.add(scheduler.downgrade(), &Arc::new(Account::default()));
    scheduler.submit(NeverEnds, "goes on", ()).unwrap().wait();
    Ok(Tally::default())
}

/// Runs this test again, in a program of its own that hangs.
fn run_again(test: &str, summary: &Path) -> Output {
    let test = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    Program::new(env::current_exe().unwrap())
        .args(["--exact", &test, "--nocapture"])
        .env(SUMMARY, summary)
        .output()
        .unwrap()
}

/// Returns the standard error of the failed program, and its summary.
fn told(output: &Output, summary: &Path) -> (String, serde_json::Value) {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let repeat = "Repeat it first: cargo xtask soak sched --seed 7";
    assert!(stderr.trim_end().ends_with(repeat), "{stderr}");
    let summary = std::fs::read_to_string(summary).unwrap();
    (stderr, serde_json::from_str(&summary).unwrap())
}

#[track_caller]
fn assert_said(text: &str, expected: &str) {
    assert!(text.contains(expected), "{expected:?} is not in\n{text}");
}

// pins: P15
#[test]
fn a_standstill_shows_every_process_every_worker_and_every_thread() {
    if env::var_os(SUMMARY).is_some() {
        hang(2.0, 600.0, stands_still);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("summary.json");
    let test = "a_standstill_shows_every_process_every_worker_and_every_thread";
    let (stderr, summary) = told(&run_again(test, &path), &path);
    assert_eq!(summary["outcome"], "hung");
    assert_eq!(summary["seed"], 7);
    assert!(summary["longest_standstill_ms"].as_u64() >= Some(2_000));
    assert_said(&stderr, "nothing has moved for 2.");
    assert_said(&stderr, "a round that hangs");
    assert_said(&stderr, "waits until the answer that never comes");
    assert_said(&stderr, "WaitsForEver): Blocked");
    assert_said(&stderr, "BlocksForEver): Running");
    assert_said(&stderr, ": runs {main|");
    assert_said(&stderr, ": looks for work, or sleeps");
    if cfg!(target_os = "linux") {
        assert_said(&stderr, "blocks_on_purpose at ");
        assert_said(&stderr, "waits_on_purpose at ");
        assert_said(&stderr, "\"ganger-worker-m\"");
        let frames = stderr
            .lines()
            .filter(|line| line.contains("ganger_sched::worker::"));
        assert!(frames.count() > 1, "{stderr}");
    }
}

#[test]
fn a_round_that_goes_on_for_ever_is_ended_too() {
    if env::var_os(SUMMARY).is_some() {
        hang(600.0, 2.0, does_not_end);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("summary.json");
    let test = "a_round_that_goes_on_for_ever_is_ended_too";
    let (stderr, summary) = told(&run_again(test, &path), &path);
    assert_eq!(summary["outcome"], "hung");
    assert_said(&stderr, "the round does not end: 2.");
    assert_said(&stderr, "1s later");
    assert_eq!(stderr.matches("NeverEnds): R").count(), 2, "{stderr}");
}
