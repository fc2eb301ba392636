//! A client that asks again when no answer comes. One version loses a reply, which the simulation
//! finds; the other does not.

#[path = "../../examples/lost_reply/ask.rs"]
mod ask;

use ask::ask;
use ganger_sim::{Faults, Sim, Strategy};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

#[test]
fn a_client_that_takes_any_answer_gets_it() {
    Sim::check(300, |rt| ask(rt, true));
    let strategy = Strategy::Priorities {
        changes: 3,
        moves: 100,
    };
    let sim = Sim::new(0).workers(3).faults(Faults::some());
    sim.strategy(strategy).check_seeds(100, |rt| ask(rt, true));
}

#[test]
fn a_reply_that_is_lost_after_a_retry_is_found_and_can_be_repeated() {
    let check = || Sim::check(300, |rt| ask(rt, false));
    let panic = catch_unwind(AssertUnwindSafe(check)).unwrap_err();
    let report = panic.downcast_ref::<String>().unwrap();
    assert!(
        report.contains("has not ended, and nothing moves any more"),
        "{report}"
    );
    let after = |mark: &str| {
        let rest = &report[report.find(mark).unwrap() + mark.len()..];
        rest[..rest.find(' ').unwrap()].to_owned()
    };
    let sim = Sim::new(after("GANGER_SIM_SEED=").parse().unwrap()).faults(Faults::some());
    let again = || sim.run(|rt| ask(rt, false));
    assert!(catch_unwind(AssertUnwindSafe(again)).is_err());
    let decisions = after("GANGER_SIM_DECISIONS=");
    let decisions: Vec<u32> = decisions.split(',').map(|it| it.parse().unwrap()).collect();
    let shorter = || sim.replay(&decisions, |rt| ask(rt, false));
    assert!(catch_unwind(AssertUnwindSafe(shorter)).is_err());
    // Without faults no reply is lost.
    Sim::new(0).check_seeds(100, |rt| ask(rt, false));
}

/// The report has each line that the guide shows; `…` stands for any text.
#[test]
fn the_guide_shows_the_report_of_this_bug() {
    let guide = include_str!("../../../../docs/SIMULATION.md");
    let (_, shown) = guide.split_once("```text\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    // On a thread without a name, as in a program that is no test.
    let check = thread::spawn(|| Sim::check(1_000, |rt| ask(rt, false)));
    let report = *check.join().unwrap_err().downcast::<String>().unwrap();
    let mut lines = report.lines();
    for expected in shown.lines() {
        let is_there = lines.any(|line| is_like(line, expected));
        assert!(
            is_there,
            "{expected:?} is not there, or not in order:\n{report}"
        );
    }
}

fn is_like(line: &str, expected: &str) -> bool {
    let mut parts = expected.split('…');
    let rest = parts.next().and_then(|first| line.strip_prefix(first));
    let rest = rest.and_then(|rest| {
        parts.try_fold(rest, |rest, part| match part {
            "" => Some(""),
            part => rest.split_once(part).map(|(_, rest)| rest),
        })
    });
    rest == Some("")
}
