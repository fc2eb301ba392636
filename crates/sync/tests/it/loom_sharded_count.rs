//! A sharded count against what enters and leaves: no thread waits in vain, and nothing is
//! overlooked.

use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::sync::Arc;
use ganger_sync::{ShardedCount, WaitableCount, fence, model, thread};
use std::time::Duration;

// pins: D2
#[test]
fn a_thread_that_waits_for_the_last_end_is_told() {
    model::check(3, || {
        let count = Arc::new(ShardedCount::new(1));
        count.enter(None);
        count.enter(None);
        let leavers = [Some(0), None].map(|owner| {
            let count = Arc::clone(&count);
            thread::spawn(move || count.leave(owner))
        });
        // Without a signal it would wait for ever, which loom reports.
        assert!(count.wait(|| 0, || Duration::MAX));
        for leaver in leavers {
            leaver.join().unwrap();
        }
    });
}

// pins: D3
#[test]
fn a_thread_that_waits_for_a_count_in_one_word_is_told() {
    model::check(3, || {
        let count = Arc::new(WaitableCount::default());
        count.enter();
        count.enter();
        let leavers = [(); 2].map(|()| {
            let count = Arc::clone(&count);
            thread::spawn(move || count.leave())
        });
        assert!(count.wait(|| 0, || Duration::MAX));
        for leaver in leavers {
            leaver.join().unwrap();
        }
    });
}

// pins: D1
#[test]
fn a_thread_that_enters_sees_the_stop_or_is_counted() {
    model::check(5, || {
        let count = Arc::new(ShardedCount::new(1));
        let stopping = Arc::new(AtomicBool::new(false));
        let submitter = {
            let (count, stopping) = (Arc::clone(&count), Arc::clone(&stopping));
            thread::spawn(move || {
                count.enter(Some(0));
                // Ordering: Relaxed, less than the real look: the fence in `enter` orders it.
                !stopping.load(Ordering::Relaxed)
            })
        };
        // Ordering: Relaxed, less than the real store: the fence orders it.
        stopping.store(true, Ordering::Relaxed);
        fence::heavy();
        let counted = count.get();
        let is_in = submitter.join().unwrap();
        assert!(!is_in || counted == 1, "a process was overlooked");
    });
}

/// One that enters at one shard and leaves at another, while a third thread counts.
#[test]
fn what_has_left_has_entered() {
    model::check(5, || {
        let count = Arc::new(ShardedCount::new(2));
        count.enter(None);
        let counter = {
            let count = Arc::clone(&count);
            // Not in this thread, whose looks would come first: loom does not find that the stores
            // in `enter` and `leave` depend on them, because loads of the same thread are in
            // between.
            thread::spawn(move || assert!((1..=2).contains(&count.get())))
        };
        // This thread stands for both owners: the second has the process from the first.
        count.enter(Some(0));
        count.leave(Some(1));
        counter.join().unwrap();
        assert_eq!(count.get(), 1);
    });
}
