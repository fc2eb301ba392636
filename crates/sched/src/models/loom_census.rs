//! Counting the living against ends and begins: nobody waits in vain, nobody is overlooked.

use crate::census::Census;
use crate::clock::Deadline;
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::sync::Arc;
use ganger_sync::{fence, model, thread};
use std::time::Duration;

// pins: D2
#[test]
fn who_waits_for_the_last_end_is_told() {
    model::check(3, || {
        let census = Arc::new(Census::new(1));
        census.enter(None);
        census.enter(None);
        let enders = [Some(0), None].map(|worker| {
            let census = Arc::clone(&census);
            thread::spawn(move || census.leave(worker))
        });
        // Were nobody to tell, it would wait for ever, which loom reports.
        assert!(census.wait(|| 0, || Deadline::after(Duration::MAX)));
        for ender in enders {
            ender.join().unwrap();
        }
    });
}

// pins: D1
#[test]
fn who_begins_sees_the_stop_or_is_counted() {
    model::check(5, || {
        let census = Arc::new(Census::new(1));
        let stopping = Arc::new(AtomicBool::new(false));
        let submitter = {
            let (census, stopping) = (Arc::clone(&census), Arc::clone(&stopping));
            thread::spawn(move || {
                census.enter(Some(0));
                // Ordering: Relaxed, less than the real look: the fence in `enter` orders it.
                !stopping.load(Ordering::Relaxed)
            })
        };
        // Ordering: Relaxed, less than the real store: the fence orders it.
        stopping.store(true, Ordering::Relaxed);
        fence::heavy();
        let counted = census.get();
        let is_in = submitter.join().unwrap();
        assert!(!is_in || counted == 1, "a process was overlooked");
    });
}

/// One that begins on one worker and ends on another, while somebody counts.
#[test]
fn who_has_ended_has_begun() {
    model::check(5, || {
        let census = Arc::new(Census::new(2));
        census.enter(None);
        let counter = {
            let census = Arc::clone(&census);
            // Not in this thread, whose looks would come first: loom does not find that the stores in
            // `enter` and `leave` depend on them, because loads of the same thread are in between.
            thread::spawn(move || assert!((1..=2).contains(&census.get())))
        };
        // This thread stands for both workers: the second has the process from the first.
        census.enter(Some(0));
        census.leave(Some(1));
        counter.join().unwrap();
        assert_eq!(census.get(), 1);
    });
}
