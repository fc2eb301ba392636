//! The drawing of each event.

use super::events::{argument, begins, completed, drawn, ends, spawned, woken, yielded};
use super::{CLIENT, COUNTER, JOBS, PING, SQL, perfetto, thread, trace};
use ganger_observe::trace::Thread;
use ganger_ring::event::{After, End, Event, Pick};

/// Draws a process, from its spawn to its end.
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

/// Passes over an end without its begin, in the middle of a ring.
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

/// Draws records whose time goes back: time stands still on their thread.
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

/// Writes the same bytes for the same events, with any number of processes.
#[test]
fn a_trace_has_the_same_bytes_each_time() {
    let events: Vec<_> = (1..200).map(|id| (id, woken(id % 50, id % 7))).collect();
    let file = || perfetto(&trace(300, [thread("worker 0", &events)]));
    assert_eq!(file(), file());
}
