//! The drawing of each event.

use super::shown::{Shown, Slice, shown};
use super::{CLIENT, COUNTER, JOBS, PING, SQL, lossy, perfetto, thread, trace};
use ganger_observe::trace::Thread;
use ganger_ring::event::{After, Cause, End, Event, Pick};

fn drawn(until: u64, threads: impl IntoIterator<Item = Thread>) -> Shown {
    shown(&perfetto(&trace(until, threads)))
}

fn spawned(process: u64, name: u32) -> Event {
    Event::Spawned {
        process,
        parent: 0,
        name,
    }
}

fn begins(process: u64) -> Event {
    Event::TurnBegins {
        process,
        name: 0,
        pick: Pick::Local,
    }
}

fn ends(process: u64, after: After) -> Event {
    Event::TurnEnds {
        process,
        after,
        steps: 1,
    }
}

fn woken(process: u64, by: u64) -> Event {
    Event::Woken {
        process,
        by,
        cause: Cause::Message,
    }
}

fn argument<'a>(slice: &'a Slice, key: &str) -> &'a str {
    slice.arguments.get(key).map_or("", |value| value)
}

/// A process, from its spawn to its end.
#[test]
fn a_life() {
    let shown = drawn(
        100,
        [
            thread(
                "worker 0",
                &[
                    (10, spawned(7, COUNTER)),
                    (20, begins(7)),
                    (30, ends(7, After::Waits)),
                    (30, Event::Parked),
                    (45, Event::Unparked),
                    (60, begins(7)),
                    (70, ends(7, After::Ready)),
                ],
            ),
            thread(
                "worker 1",
                &[
                    (40, woken(7, 0)),
                    (80, begins(7)),
                    (
                        85,
                        Event::Ended {
                            process: 7,
                            end: End::Failed,
                        },
                    ),
                    (90, ends(7, After::Ended)),
                ],
            ),
        ],
    );
    assert_eq!(shown.scheduler, "main");
    let label = "counter {main|7}";
    assert_eq!(shown.of("life"), [(label, label, 10, 85)]);
    assert_eq!(argument(shown.only(label), "end"), "failed");
    let turns = [
        ("worker 0", "counter", 20, 30),
        ("worker 0", "counter", 60, 70),
        ("worker 1", "counter", 80, 90),
    ];
    assert_eq!(shown.of("turn"), turns);
    let ready = [
        (label, "ready", 10, 20),
        (label, "ready", 40, 60),
        (label, "ready", 70, 80),
    ];
    assert_eq!(shown.of("ready"), ready);
    assert_eq!(shown.of("waits"), [(label, "waits for messages", 30, 40)]);
    assert_eq!(shown.of("sleep"), [("worker 0", "sleeps", 30, 45)]);
    let instants = [
        ("worker 0", "spawns counter", 10),
        ("worker 1", "wakes counter", 40),
        ("worker 1", "ends counter", 85),
    ];
    assert_eq!(shown.instants(), instants);
    let flow = |start: &str| (start.to_owned(), "counter".to_owned());
    assert_eq!(shown.flows, [flow("spawns counter"), flow("wakes counter")]);
    let first = shown
        .slices
        .iter()
        .find(|slice| slice.category == "turn")
        .unwrap();
    assert_eq!(argument(first, "pick"), "own deque");
    assert_eq!(argument(first, "after"), "waits");
    assert_eq!(argument(first, "steps"), "1");
    assert_eq!(argument(first, "process"), label);
}

#[test]
fn a_message_is_an_arrow_from_its_send() {
    let sent = |key| Event::Sent {
        to: 7,
        from: 8,
        message: PING,
        key,
    };
    let taken = |key| Event::Taken {
        process: 7,
        message: PING,
        key,
    };
    let shown = drawn(
        100,
        [
            thread(
                "worker 0",
                &[
                    (1, spawned(7, COUNTER)),
                    (1, spawned(8, CLIENT)),
                    (2, sent(5)),
                    (3, sent(6)),
                ],
            ),
            // The third was sent before the window: nothing is known of its send.
            thread(
                "worker 1",
                &[
                    (10, taken(5)),
                    (11, taken(6)),
                    (12, taken(7)),
                    (13, taken(0)),
                ],
            ),
        ],
    );
    let flow = ("sends Ping".to_owned(), "takes Ping".to_owned());
    assert_eq!(shown.flows, [flow.clone(), flow]);
    let sends = shown
        .instants
        .iter()
        .find(|it| it.name == "sends Ping")
        .unwrap();
    assert_eq!(argument(sends, "process"), "counter {main|7}");
    assert_eq!(argument(sends, "by"), "client {main|8}");
}

/// Nodes are used again, and so are their addresses: the newest send counts.
#[test]
fn a_key_that_is_used_again_is_of_the_newest_message() {
    let sent = Event::Sent {
        to: 7,
        from: 0,
        message: PING,
        key: 5,
    };
    let taken = Event::Taken {
        process: 7,
        message: 0,
        key: 5,
    };
    let events = [
        (1, sent),
        (2, taken),
        (3, sent),
        (4, sent),
        (5, taken),
        (6, taken),
    ];
    let shown = drawn(9, [thread("worker 0", &events)]);
    let flow = ("sends Ping".to_owned(), "takes a message".to_owned());
    assert_eq!(shown.flows, [flow.clone(), flow]);
}

fn yielded(token: u32) -> Event {
    Event::Yielded {
        process: 7,
        command: SQL,
        tag: 99,
        token,
    }
}

fn completed(token: u32) -> Event {
    Event::Completed {
        process: 7,
        command: SQL,
        token,
    }
}

/// Commands underway together are on tracks of their own, and a track is used again.
#[test]
fn commands_have_lanes() {
    let shown = drawn(
        100,
        [thread(
            "worker 0",
            &[
                (1, spawned(7, COUNTER)),
                (2, begins(7)),
                (3, yielded(1)),
                (4, yielded(2)),
                (5, ends(7, After::Waits)),
                (6, completed(1)),
                (7, yielded(3)),
                (8, completed(3)),
                (9, completed(2)),
                (10, completed(2)),
                (11, yielded(4)),
                (
                    12,
                    Event::Ended {
                        process: 7,
                        end: End::Done,
                    },
                ),
                (13, completed(4)),
            ],
        )],
    );
    let lanes = [
        ("commands", "sql", 3, 6),
        ("commands", "sql", 7, 8),
        ("commands", "sql", 4, 9),
    ];
    assert_eq!(shown.of("yield")[..3], lanes);
    assert_eq!(shown.of("yield")[3..], [("commands", "sql", 11, 12)]);
    let first = shown
        .slices
        .iter()
        .find(|it| it.category == "yield")
        .unwrap();
    assert_eq!(argument(first, "tag"), "99");
    assert_eq!(shown.only("waits for sql").begin, 5);
}

#[test]
fn messages_without_a_key_have_no_arrow() {
    let message = PING;
    let (to, from, process, key) = (7, 0, 7, 0);
    let sent = Event::Sent {
        to,
        from,
        message,
        key,
    };
    let taken = Event::Taken {
        process,
        message,
        key,
    };
    let shown = drawn(9, [thread("worker 0", &[(1, sent), (2, taken)])]);
    assert_eq!(shown.instants.len(), 2);
    assert!(shown.flows.is_empty(), "{:?}", shown.flows);
}

#[test]
fn a_wait_is_for_the_newest_command() {
    let newest = Event::Yielded {
        process: 7,
        command: JOBS,
        tag: 0,
        token: 2,
    };
    let events = [
        (1, begins(7)),
        (2, yielded(1)),
        (3, newest),
        (4, ends(7, After::Waits)),
    ];
    let shown = drawn(9, [thread("worker 0", &events)]);
    assert_eq!(shown.only("waits for late \"jobs\"").begin, 4);
}

#[test]
fn other_events_are_instants_and_values() {
    let queue = |length| Event::Queue { name: JOBS, length };
    let mark = |process| Event::Mark {
        process,
        name: JOBS,
        value: 11,
    };
    let shown = drawn(
        100,
        [thread(
            "worker 0",
            &[
                (
                    1,
                    Event::TimerFired {
                        process: 7,
                        late: 300,
                    },
                ),
                (
                    2,
                    Event::Stole {
                        victim: 3,
                        count: 4,
                    },
                ),
                (3, Event::Spare { worker: 2 }),
                (
                    4,
                    Event::Alarm {
                        process: 7,
                        name: SQL,
                        value: 10,
                    },
                ),
                (5, mark(0)),
                (6, queue(1)),
                (7, queue(0)),
            ],
        )],
    );
    assert_eq!(argument(shown.only("timer of process"), "late (ns)"), "300");
    assert_eq!(argument(shown.only("steals"), "victim"), "3");
    assert_eq!(argument(shown.only("steals"), "count"), "4");
    assert_eq!(argument(shown.only("a spare takes over"), "worker"), "2");
    let alarm = shown.only("sql");
    assert_eq!(
        (&*alarm.category, argument(alarm, "value")),
        ("alarm", "10")
    );
    assert_eq!(argument(alarm, "process"), "process {main|7}");
    let mark = shown.only("late \"jobs\"");
    assert_eq!((&*mark.category, argument(mark, "process")), ("mark", ""));
    let queue = "late \"jobs\"".to_owned();
    assert_eq!(shown.values, [(queue.clone(), 6, 1), (queue, 7, 0)]);
}

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

/// An end without its begin, in the middle of a ring, is passed over.
#[test]
fn an_end_of_another_turn_ends_nothing() {
    let events = [
        (10, begins(7)),
        (20, ends(8, After::Ready)),
        (25, Event::Unparked),
        (30, ends(7, After::Ready)),
        (40, ends(7, After::Waits)),
        (45, Event::Unparked),
    ];
    let shown = drawn(50, [thread("worker 0", &events)]);
    assert_eq!(shown.of("turn"), [("worker 0", "process", 10, 30)]);
    assert_eq!(shown.of("sleep"), []);
    assert_eq!(shown.of("ready"), [("process {main|7}", "ready", 30, 50)]);
}

/// A worker stuck since long before the window is seen: its ring still has the begin of its turn.
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

/// Threads read their clocks by themselves, so events of a process may change places.
#[test]
fn clocks_that_differ_draw_no_nonsense() {
    let shown = drawn(
        100,
        [
            thread(
                "worker 0",
                &[
                    (11, spawned(7, COUNTER)),
                    (20, begins(7)),
                    (31, ends(7, After::Waits)),
                ],
            ),
            thread(
                "worker 1",
                &[
                    (30, woken(7, 0)),
                    (40, begins(7)),
                    (51, ends(7, After::Ready)),
                ],
            ),
            thread("worker 2", &[(10, woken(7, 0)), (50, begins(7))]),
            thread("helper", &[(5, Event::Parked), (54, completed(1))]),
            thread("worker 3", &[(55, yielded(1))]),
        ],
    );
    let label = "counter {main|7}";
    assert_eq!(shown.of("life"), [(label, label, 10, 100)]);
    // The wake-up came before the end of the turn: the process was ready at once.
    assert_eq!(shown.of("waits"), [(label, "waits", 10, 10)]);
    assert_eq!(
        shown.of("ready"),
        [(label, "ready", 10, 20), (label, "ready", 31, 40)]
    );
    // The newest turn counts: the process still runs on worker 2.
    assert_eq!(shown.of("turn").len(), 3);
    assert_eq!(shown.of("yield"), [("commands", "sql", 55, 55)]);
}

/// Time does not go back on a thread, even if its records do.
#[test]
fn a_clock_that_goes_back_stands_still() {
    let events = [
        (50, begins(7)),
        (20, ends(7, After::Ready)),
        (60, begins(7)),
    ];
    let shown = drawn(40, [thread("worker 0", &events)]);
    let turns = [
        ("worker 0", "process", 50, 50),
        ("worker 0", "process", 60, 60),
    ];
    assert_eq!(shown.of("turn"), turns);
    assert_eq!(shown.head["to (ns)"], "60");
}

#[test]
fn unknown_records_are_counted_and_names_without_text_have_their_number() {
    let unknown = [9, 200, 0, 0];
    let begins = Event::TurnBegins {
        process: 7,
        name: 77,
        pick: Pick::Global,
    };
    let records = vec![unknown, begins.record(10), unknown];
    let snapshot = ganger_ring::Snapshot { lost: 0, records };
    let shown = drawn(20, [Thread::new("worker 0", snapshot)]);
    assert_eq!(shown.head["unknown"], "2");
    assert_eq!(shown.of("turn"), [("worker 0", "#77", 10, 20)]);
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

/// The window begins at a record, known or not, and never ends before.
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

/// The same events give the same bytes, with any number of processes.
#[test]
fn a_trace_has_the_same_bytes_each_time() {
    let events: Vec<_> = (1..200).map(|id| (id, woken(id % 50, id % 7))).collect();
    let file = || perfetto(&trace(300, [thread("worker 0", &events)]));
    assert_eq!(file(), file());
}
