//! The window of a trace, and slices across its ends.

use super::events::{argument, begins, completed, drawn, ends, spawned, woken, yielded};
use super::shown::shown;
use super::{COUNTER, lossy, perfetto, text, thread};
use ganger_observe::trace::{Thread, Trace};
use ganger_ring::event::{After, Event};

/// Slices that cross an end of the window are cut there, and marked.
#[test]
fn a_window_has_whole_slices() {
    let shown = drawn(
        100,
        [
            lossy(
                "worker 0",
                500,
                &[
                    (50, ends(7, After::Ready)),
                    (60, completed(1)),
                    (61, yielded(2)),
                ],
            ),
            lossy("worker 1", 1, &[(20, begins(8)), (45, Event::Parked)]),
            lossy(
                "worker 2",
                2,
                &[(40, Event::Unparked), (70, woken(9, 7)), (80, begins(9))],
            ),
        ],
    );
    assert_eq!(shown.head["from (ns)"], "50");
    assert_eq!(shown.head["to (ns)"], "100");
    assert_eq!(shown.head["lost"], "503");
    assert_eq!(shown.head["left out"], "3");
    assert_eq!(shown.head["unknown"], "0");
    let turns = [
        ("worker 0", "process", 50, 50),
        ("worker 2", "process", 80, 100),
    ];
    assert_eq!(shown.of("turn"), turns);
    // Worker 1 has parked, with its turn lost or cut off before; it still sleeps.
    assert_eq!(shown.of("sleep"), [("worker 1", "sleeps", 50, 100)]);
    let sleeps = shown.only("sleeps");
    assert_eq!(
        (
            argument(sleeps, "began earlier"),
            argument(sleeps, "goes on")
        ),
        ("1", "1")
    );
    let waits = shown.only("waits");
    assert_eq!(
        (&*waits.track, waits.begin, waits.end),
        ("process {main|9}", 50, 70)
    );
    assert_eq!(argument(waits, "began earlier"), "1");
    let yields = shown.of("yield");
    assert_eq!(
        yields,
        [("commands", "sql", 50, 60), ("commands", "sql", 61, 100)]
    );
}

#[test]
fn a_window_begins_where_the_last_ring_is_complete() {
    let turn = [(10, begins(7)), (20, ends(7, After::Ready))];
    let shown = drawn(
        100,
        [
            lossy("worker 0", 5, &[turn[0], turn[1], (60, Event::Parked)]),
            lossy("worker 1", 1, &[(40, Event::Parked)]),
            lossy("worker 2", 1, &[(30, Event::Parked)]),
        ],
    );
    assert_eq!(shown.head["from (ns)"], "40");
    assert_eq!(shown.head["left out"], "3");
    // The turn was over before the window.
    assert_eq!(shown.of("turn"), []);
    let sleeps = [
        ("worker 0", "sleeps", 60, 100),
        ("worker 1", "sleeps", 40, 100),
        ("worker 2", "sleeps", 40, 100),
    ];
    assert_eq!(shown.of("sleep"), sleeps);
}

/// Cuts a shorter window than the rings have in the same way.
#[test]
fn a_window_may_be_shorter() {
    let events = [
        (10, begins(7)),
        (20, yielded(1)),
        (30, ends(7, After::Waits)),
        (40, completed(1)),
    ];
    let worker = thread("worker 0", &events);
    let trace = Trace::new("main", 25..50, [worker.clone()], text);
    let cut = shown(&perfetto(&trace));
    assert_eq!((trace.left_out(), &*cut.head["from (ns)"]), (2, "25"));
    assert_eq!(cut.of("turn"), [("worker 0", "process", 25, 30)]);
    assert_eq!(cut.of("yield"), [("commands", "sql", 25, 40)]);
    let end = 50;
    let after = Trace::new("main", 100..end, [worker], text);
    assert_eq!((after.from(), after.to()), (after.to(), after.from()));
    assert_eq!(shown(&perfetto(&after)).of("turn"), []);
}

/// Shows a worker stuck since long before the window: its ring still has the begin of its turn.
#[test]
fn a_stuck_worker_is_seen() {
    let shown = drawn(
        1_000,
        [
            thread("worker 0", &[(1, spawned(7, COUNTER)), (2, begins(7))]),
            lossy(
                "worker 1",
                9,
                &[(900, begins(8)), (950, ends(8, After::Waits))],
            ),
        ],
    );
    let stuck = shown.of("turn")[1];
    assert_eq!(stuck, ("worker 0", "counter", 900, 1_000));
}

#[test]
fn nothing_at_all_is_a_trace() {
    let shown = drawn(100, []);
    assert_eq!(
        (&*shown.head["from (ns)"], &*shown.head["to (ns)"]),
        ("100", "100")
    );
    assert_eq!(drawn(0, [thread("worker 0", &[])]).slices, []);
    // A writer has overtaken the copy of its ring: the window is empty.
    let shown = drawn(
        100,
        [
            lossy("worker 0", 5, &[]),
            thread("worker 1", &[(5, begins(7))]),
        ],
    );
    assert_eq!(shown.head["left out"], "1");
    assert_eq!(shown.of("turn"), [("worker 1", "process", 100, 100)]);
}

/// Begins the window at a record, known or not, and never ends it before.
#[test]
fn a_ring_of_unknown_records_has_a_window() {
    let snapshot = ganger_ring::Snapshot {
        lost: 1,
        records: vec![[50, 200, 0, 0]],
    };
    let threads = [
        Thread::new("worker 0", snapshot),
        thread("worker 1", &[(10, begins(7))]),
    ];
    let shown = drawn(20, threads);
    assert_eq!(
        (&*shown.head["from (ns)"], &*shown.head["to (ns)"]),
        ("50", "50")
    );
    assert_eq!(shown.of("turn"), [("worker 1", "process", 50, 50)]);
}
