//! The longest turns and waits.

use super::{CLIENT, COUNTER, SQL, lossy, perfetto, thread, trace};
use ganger_observe::trace::Trace;
use ganger_ring::event::{After, Cause, Event, Pick};
use std::time::Duration;

const MS: u64 = 1_000_000;

fn turn(process: u64, name: u32, at: u64, lasts: u64) -> [(u64, Event); 2] {
    let pick = Pick::Local;
    let after = After::Waits;
    [
        (
            at,
            Event::TurnBegins {
                process,
                name,
                pick,
            },
        ),
        (
            at + lasts,
            Event::TurnEnds {
                process,
                after,
                steps: 1,
            },
        ),
    ]
}

#[test]
fn ten_of_each_the_longest_first() {
    let turns = (1..30_u64).flat_map(|id| turn(id, COUNTER, 100 * MS * id, MS * (1 + id % 12)));
    let worker = thread("worker 0", &turns.collect::<Vec<_>>());
    let summary = trace(4_000 * MS, [worker]).summary();
    let lasted: Vec<u128> = summary
        .turns
        .iter()
        .map(|it| it.lasted.as_millis())
        .collect();
    assert_eq!(lasted, [12, 12, 11, 11, 10, 10, 9, 9, 8, 8]);
    assert_eq!(summary.turns[0].process, "counter {main|11}");
    assert_eq!(summary.turns[1].process, "counter {main|23}");
    assert_eq!(summary.turns[0].what, "worker 0");
    assert_eq!(summary.turns[0].at, Duration::from_millis(1_100));
    // The processes are idle.
    assert!(summary.waits.is_empty(), "{summary}");
}

#[test]
fn commands_and_ready_processes_wait() {
    let yielded = Event::Yielded {
        process: 7,
        command: SQL,
        tag: 1,
        token: 1,
    };
    let woken = Event::Woken {
        process: 8,
        by: 0,
        cause: Cause::Message,
    };
    let [begin, end] = turn(8, CLIENT, 40 * MS, 5 * MS);
    let worker = thread(
        "worker 0",
        &[(10 * MS, yielded), (20 * MS, woken), begin, end],
    );
    let summary = trace(100 * MS, [worker]).summary();
    let waits: Vec<_> = summary
        .waits
        .iter()
        .map(|it| (&*it.process, &*it.what))
        .collect();
    assert_eq!(
        waits,
        [("process {main|7}", "sql"), ("client {main|8}", "a worker")]
    );
    assert!(summary.waits[0].goes_on && !summary.waits[1].goes_on);
    assert_eq!(summary.waits[0].lasted, Duration::from_millis(90));
    assert_eq!(summary.waits[1].lasted, Duration::from_millis(20));
}

#[test]
fn the_text_is_for_people_and_the_same_from_a_file() {
    let [begin, end] = turn(8, CLIENT, 40 * MS, 5 * MS);
    let yielded = Event::Yielded {
        process: 8,
        command: SQL,
        tag: 1,
        token: 1,
    };
    let worker = lossy("worker 0", 12, &[begin, (42 * MS, yielded), end]);
    let trace = trace(100 * MS, [worker]);
    let text = trace.summary().to_string();
    let expected = "\
Trace of main, from 40.000ms to 100.000ms after its start.
12 events before it were overwritten.

Longest turns:
     5.000ms  client {main|8} on worker 0, at 40.000ms

Longest waits:
    58.000ms  client {main|8} for sql, at 42.000ms, goes on
";
    assert_eq!(text, expected);
    let read = Trace::read(&perfetto(&trace)[..]).unwrap();
    assert_eq!(read.summary().to_string(), text);
    assert_eq!(read.scheduler(), "main");
}
