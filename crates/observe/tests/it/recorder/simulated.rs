//! A scheduler in a simulation: the order of its events is in the file, and repeats by the seed.

use super::{HOUR, instants};
use crate::trace::perfetto;
use crate::trace::shown::shown;
use ganger_observe::Observer;
use ganger_proc_api::{Event, Message, Process, process_fn};
use ganger_sched::{ContextExt, Recorder};
use ganger_sim::{Faults, Sim};
use std::cell::RefCell;
use std::time::Duration;

/// Passes the ball on to a new process, until it has been passed often enough.
fn passes(times: u64) -> impl Process {
    process_fn(move |ctx, events, out| {
        for event in events {
            let Event::Message(message) = event else {
                continue;
            };
            if message.topic == "ball" && times > 0 {
                let next = ctx.submit(passes(times - 1), "main", ())?;
                ctx.send(next, "ball", ())?;
                let _later = ctx.send_after(Duration::from_millis(times), ctx.pid(), "end", ());
            } else {
                out.done(());
            }
        }
        Ok(())
    })
}

/// Returns the file of a run.
fn file(seed: u64) -> Vec<u8> {
    let file = RefCell::new(Vec::new());
    let recorder = Recorder::new().bytes(1 << 20);
    let sim = Sim::new(seed).workers(3).faults(Faults::some());
    sim.builder(move |it| it.record(recorder.clone()))
        .run(|rt| {
            let first = rt.submit(passes(9), "main", ()).unwrap();
            // A fault may have it end sooner.
            let _sent = first.send(Message::new("ball", ()));
            let _end = rt.wait(first);
            rt.settle();
            file.replace(perfetto(&Observer::of(rt).trace(HOUR).unwrap()));
        });
    file.into_inner()
}

// pins: V15
#[test]
fn a_seed_has_one_file() {
    let mut files = Vec::new();
    for seed in 0..20 {
        let first = file(seed);
        assert!(file(seed) == first, "the files of seed {seed} differ");
        files.push(first);
    }
    files.sort();
    files.dedup();
    assert!(files.len() > 10, "other seeds have other files");
}

// pins: V15
#[test]
fn each_event_has_a_time_of_its_own() {
    for seed in 0..20 {
        let shown = shown(&file(seed));
        let messages = instants(&shown, "message");
        assert!(messages.is_sorted_by(|a, b| a.begin < b.begin));
        let takes = messages.iter().filter(|it| it.name == "takes ball").count();
        let arrows = shown.flows.iter().filter(|it| it.1 == "takes ball").count();
        assert_eq!(takes, arrows, "of seed {seed}");
        assert!(takes > 0, "of seed {seed}");
    }
}
