//! The guide to the simulation shows the output of a test.

#[path = "../../../sim/examples/lost_reply/ask.rs"]
mod ask;

use ask::ask;
use ganger_sim::Sim;
use std::thread;

/// Finds each line of the guide in the report; `…` stands for any text.
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
