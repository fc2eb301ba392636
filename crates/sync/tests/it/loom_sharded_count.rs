//! Counts against threads that enter and leave: no thread waits in vain, no member is missed, and a
//! member's leave makes its earlier actions visible.

use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::cell::UnsafeCell;
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
        // Without a signal, the thread would wait for ever: loom reports this.
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
                // Ordering: Relaxed, weaker than the real load: the fence in `enter` orders it.
                !stopping.load(Ordering::Relaxed)
            })
        };
        // Ordering: Relaxed, weaker than the real store: the fence orders it.
        stopping.store(true, Ordering::Relaxed);
        fence::heavy();
        let counted = count.get();
        let is_in = submitter.join().unwrap();
        assert!(!is_in || counted == 1, "a process was overlooked");
    });
}

/// Lets a child in by its parent, on another thread; then the parent closes and leaves.
// pins: D2
#[test]
fn a_child_that_finds_its_parent_open_is_waited_for() {
    model::check(4, || {
        let count = Arc::new(ShardedCount::new(2));
        let is_closed = Arc::new(AtomicBool::new(false));
        count.enter(None);
        let child = {
            let (count, is_closed) = (Arc::clone(&count), Arc::clone(&is_closed));
            thread::spawn(move || {
                count.enter(Some(0));
                // Ordering: Relaxed, weaker than the real load: the fence in `enter` orders it.
                !is_closed.load(Ordering::Relaxed)
            })
        };
        let parent = {
            let count = Arc::clone(&count);
            thread::spawn(move || {
                // Ordering: Relaxed, weaker than the real close: `leave` releases it.
                is_closed.store(true, Ordering::Relaxed);
                count.leave(Some(1));
            })
        };
        let none_left = count.wait(|| 0, || Duration::ZERO);
        let is_in = child.join().unwrap();
        parent.join().unwrap();
        assert!(!(is_in && none_left), "a child was overlooked");
    });
}

/// Enters at one shard and leaves at another, while a third thread counts.
#[test]
fn what_has_left_has_entered() {
    model::check(5, || {
        let count = Arc::new(ShardedCount::new(2));
        count.enter(None);
        let counter = {
            let count = Arc::clone(&count);
            // The count runs on a thread of its own. Here its loads would come first: loom does not
            // find their dependence on the stores in `enter` and `leave`, because loads of the same
            // thread are in between.
            thread::spawn(move || assert!((1..=2).contains(&count.get())))
        };
        // This thread stands for both owners: the second has the process from the first.
        count.enter(Some(0));
        count.leave(Some(1));
        counter.join().unwrap();
        assert_eq!(count.get(), 1);
    });
}

/// A count, and a cell for each member, written before the member leaves.
struct Written<C> {
    count: C,
    cells: [UnsafeCell<u32>; 2],
}

// SAFETY: a thread reads a cell after it has seen its writer leave: the models check this.
unsafe impl<C: Sync> Sync for Written<C> {}
// SAFETY: a thread reads a cell after its writer has left: the models check this.
unsafe impl<C: Send> Send for Written<C> {}

impl<C> Written<C> {
    fn new(count: C) -> Arc<Self> {
        let cells = [(); 2].map(|()| UnsafeCell::new(0));
        Arc::new(Self { count, cells })
    }

    fn write(&self, nth: usize) {
        // SAFETY: no other thread uses the cell before this thread has left.
        self.cells[nth].with_mut(|cell| unsafe { *cell = 7 });
    }

    fn assert_seen(&self, nth: usize) {
        // SAFETY: its writer has left.
        self.cells[nth].with(|cell| assert_eq!(unsafe { *cell }, 7));
    }
}

/// Writes by two threads, which then leave by `leave`. If `get` returns 0, the writes of both are
/// visible.
fn check_that_both_are_seen<C: Send + Sync + 'static>(
    new: fn() -> C,
    leave: fn(&C),
    get: fn(&C) -> usize,
) {
    model::check(4, move || {
        let written = Written::new(new());
        let leavers = [0, 1].map(|nth| {
            let written = Arc::clone(&written);
            thread::spawn(move || {
                written.write(nth);
                leave(&written.count);
            })
        });
        if get(&written.count) == 0 {
            (0..2).for_each(|nth| written.assert_seen(nth));
        }
        for leaver in leavers {
            leaver.join().unwrap();
        }
    });
}

// pins: D3
#[test]
fn what_is_counted_out_in_one_word_is_seen() {
    let two = || {
        let count = WaitableCount::default();
        (0..2).for_each(|_| count.enter());
        count
    };
    check_that_both_are_seen(two, WaitableCount::leave, WaitableCount::get);
}

// pins: D2
#[test]
fn what_is_counted_out_in_shards_is_seen() {
    let two = || {
        let count = ShardedCount::new(1);
        (0..2).for_each(|_| count.enter(None));
        count
    };
    check_that_both_are_seen(two, |count| count.leave(None), ShardedCount::get);
}

/// Runs the leaving thread first. Loom keeps only the last load of each object, and an owner loads
/// its counter before it stores. So loom would not try a store before an earlier thread's load.
// pins: D2
#[test]
fn what_an_owner_counts_out_is_seen() {
    model::check(4, || {
        let written = Written::new(ShardedCount::new(1));
        written.count.enter(None);
        let reader = {
            let written = Arc::clone(&written);
            thread::spawn(move || {
                let has_left = written.count.get() == 0;
                if has_left {
                    written.assert_seen(0);
                }
            })
        };
        written.write(0);
        written.count.leave(Some(0));
        reader.join().unwrap();
    });
}

// pins: P13
#[test]
fn a_place_that_is_taken_shows_what_the_one_before_did() {
    model::check(4, || {
        let written = Written::new(WaitableCount::default());
        assert!(written.count.enter_below(1));
        let leaver = {
            let written = Arc::clone(&written);
            thread::spawn(move || {
                written.write(0);
                written.count.leave();
            })
        };
        if written.count.enter_below(1) {
            written.assert_seen(0);
        }
        leaver.join().unwrap();
    });
}

// pins: P13
#[test]
fn of_several_one_finds_the_last_place() {
    model::check(4, || {
        let count = Arc::new(WaitableCount::default());
        let others = [(); 2].map(|()| {
            let count = Arc::clone(&count);
            thread::spawn(move || count.enter_below(2))
        });
        let is_in = count.enter_below(2);
        let others = others.map(|it| it.join().unwrap());
        let all = [is_in, others[0], others[1]];
        assert_eq!(all.into_iter().filter(|is_in| *is_in).count(), 2);
        assert_eq!(count.get(), 2);
    });
}
