//! Full rings: the workers overwrite the oldest events, also during a copy.

use super::{HOUR, instants, seen, trace};
use ganger_proc_api::{Event, Pid, Process, process_fn};
use ganger_sched::{Recorder, Scheduler};
use std::thread;

/// Sends each message back to its sender. At first it sends a message to `to`.
fn player(to: Option<Pid>) -> impl Process {
    let mut to = to;
    process_fn(move |ctx, events, _| {
        if let Some(to) = to.take() {
            ctx.send(to, "ball", ())?;
        }
        for event in events {
            if let Event::Message(message) = event
                && let Some(from) = message.source
            {
                ctx.send(from, "ball", ())?;
            }
        }
        Ok(())
    })
}

/// Starts a scheduler with a few thousand events in its memory, and two processes that send each
/// other a ball for ever.
fn busy() -> Scheduler {
    let recorder = Recorder::new().bytes(3 * 64 * 1024).at_least(HOUR);
    let scheduler = Scheduler::builder().workers(2).record(recorder);
    let scheduler = scheduler.start().unwrap();
    let first = scheduler.submit(player(None), "main", ()).unwrap();
    let second = scheduler.submit(player(Some(first.pid())), "main", ());
    drop(second.unwrap());
    scheduler
}

// pins: V15
#[test]
fn a_ring_that_is_overwritten_keeps_all_of_the_time_that_it_covers() {
    let scheduler = busy();
    for _ in 0..20 {
        // The reader copies while the workers write.
        while trace(&scheduler).lost() < 10_000 {
            thread::yield_now();
        }
        let shown = seen(&scheduler);
        let messages = instants(&shown, "message");
        let names: Vec<_> = messages.iter().map(|it| &*it.name).collect();
        // The players have a single ball: no event is missing, and no event is in the wrong order.
        let pairs = names.windows(2);
        assert!(pairs.clone().all(|it| it[0] != it[1]), "{names:?}");
        assert!(
            names
                .iter()
                .all(|it| ["sends ball", "takes ball"].contains(it))
        );
        let arrows = shown.flows.iter().filter(|it| it.0 == "sends ball").count();
        let receipts = names.iter().filter(|it| **it == "takes ball").count();
        assert!(
            arrows == receipts || arrows + 1 == receipts,
            "{arrows} of {receipts}"
        );
    }
}

// pins: V15
#[test]
fn a_trace_is_as_long_as_it_is_asked_for() {
    let scheduler = busy();
    while trace(&scheduler).lost() == 0 {
        thread::yield_now();
    }
    let observer = ganger_observe::Observer::of(&scheduler);
    let whole = observer.trace(None).unwrap();
    let long = whole.to() - whole.from();
    let half = observer.trace(long / 2).unwrap();
    assert!(half.to() - half.from() <= long, "{half:?}");
    assert!(half.left_out() > 0 && half.to() >= whole.to());
}
