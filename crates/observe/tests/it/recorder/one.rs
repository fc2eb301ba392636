//! The last events of a process.

use crate::endpoint::support::until;
use ganger_observe::{Observer, Recent};
use ganger_proc_api::{Pid, actor_fn};
use ganger_sched::{Recorder, Scheduler, mark};
use std::sync::mpsc;

fn recorded() -> Scheduler {
    let recorder = Recorder::new().bytes(1 << 20);
    let builder = Scheduler::builder().workers(1).record(recorder);
    builder.start().unwrap()
}

fn events(scheduler: &Scheduler, pid: Pid, n: usize) -> Vec<Recent> {
    Observer::of(scheduler).events(pid, n).unwrap()
}

fn text<'a>(events: &'a [Recent], what: &str) -> &'a str {
    let found = events.iter().find(|it| it.what == what);
    &found
        .unwrap_or_else(|| panic!("{what} is missing: {events:#?}"))
        .text
}

// pins: V15
#[test]
fn the_events_of_a_process_tell_its_life_and_nothing_of_others() {
    let scheduler = recorded();
    let (back, answers) = mpsc::channel();
    let (is, sender_is) = mpsc::channel::<u64>();
    let echo = actor_fn(move |_, back: mpsc::Sender<()>, _| {
        mark("it is back", 7);
        // The value looks like the PID of the sender.
        mark("it is back with a number", sender_is.recv()?);
        Ok(back.send(())?)
    });
    let echo = scheduler.spawn(echo).unwrap();
    let target = echo.address().clone();
    let sender = actor_fn(move |_, back: mpsc::Sender<()>, out| {
        mark("on its way", 42);
        target.send(back)?;
        out.done(());
        Ok(())
    });
    let sender = scheduler.spawn(sender).unwrap();
    let (from, to) = (sender.pid(), echo.pid());
    is.send(from.id()).unwrap();
    sender.send(back).unwrap();
    answers.recv().unwrap();
    assert!(sender.wait().is_done());

    let mut all = Vec::new();
    // The sender may have had a turn before its message came.
    until("its last turn is over", || {
        all = events(&scheduler, from, 100);
        let count = |what| all.iter().filter(|it| it.what == what).count();
        count("ends") == 1 && count("turn begins") == count("turn ends")
    });
    let story = [
        "is spawned",
        "is sent",
        "turn begins",
        "takes",
        "mark",
        "sends",
        "ends",
    ];
    let mut left = all.iter();
    for what in story {
        let found = left.any(|it| it.what == what);
        assert!(found, "{what} is missing or too early: {all:#?}");
    }
    assert!(all.is_sorted_by_key(|it| it.at));
    assert_eq!(text(&all, "mark"), "on its way: 42");
    assert_eq!(text(&all, "ends"), "done");
    assert!(text(&all, "sends").ends_with(&format!(" to {to}")));
    assert!(all.iter().all(|it| !it.text.contains("it is back")));
    assert!(
        all.iter()
            .any(|it| it.what == "takes" && &*it.thread == "worker 0")
    );
    for n in 0..all.len() {
        // Each recording measures its clock anew: times differ by a few nanoseconds.
        let told = |it: &Recent| (it.what, it.text.clone());
        let last = events(&scheduler, from, n);
        let last: Vec<_> = last.iter().map(told).collect();
        let expected: Vec<_> = all[all.len() - n..].iter().map(told).collect();
        assert_eq!(last, expected, "the last {n}");
    }

    let of_echo = events(&scheduler, to, 100);
    assert!(text(&of_echo, "is sent").ends_with(&format!(", by {from}")));
    assert_eq!(text(&of_echo, "mark"), "it is back: 7");
}

// pins: V15
#[test]
fn a_thousand_events_are_the_most_and_without_a_recorder_is_an_error() {
    let scheduler = recorded();
    let marks = actor_fn(|_, count: u64, out| {
        (0..count).for_each(|number| mark("a number", number));
        out.done(());
        Ok(())
    });
    let marks = scheduler.spawn(marks).unwrap();
    let pid = marks.pid();
    marks.send(1_500).unwrap();
    assert!(marks.wait().is_done());
    let last = events(&scheduler, pid, usize::MAX);
    assert_eq!(last.len(), 1_000);
    assert!(last.iter().any(|it| it.text == "a number: 1499"));
    assert!(last.iter().all(|it| it.text != "a number: 0"));

    let plain = Scheduler::builder().workers(1).start().unwrap();
    let error = Observer::of(&plain).events(pid, 1).unwrap_err().to_string();
    assert!(error.contains("`Builder::record"), "{error}");
}
