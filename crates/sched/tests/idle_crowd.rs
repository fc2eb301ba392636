//! The example with a crowd of idle processes, with a small crowd; and its complaints.
#![cfg(not(ganger_loom))]

#[path = "../examples/idle_crowd.rs"]
#[expect(dead_code, reason = "the example's own `main`")]
mod example;

use example::{Used, check_count, crowd};

// pins: P2, P12
#[test]
fn a_crowd_takes_what_is_promised_handles_every_message_and_leaves_nothing() {
    crowd(200_000).unwrap();
}

const START: Used = Used {
    heap: 1 << 30,
    resident: Some(2 << 30),
};

/// Returns the complaint of the example about a thousand processes, with limits of a hundred bytes
/// each on the heap and two hundred resident.
fn said(heap: u64, resident: Option<u64>) -> Option<String> {
    let used = Used {
        heap: START.heap + heap,
        resident: resident.map(|more| (2 << 30) + more),
    };
    used.check(START, "now", 1_000, (100, 200)).err()
}

#[test]
fn a_process_that_takes_more_than_it_may_is_told() {
    const HEAP: u64 = (1 << 20) + 100_000;
    const RESIDENT: u64 = (8 << 20) + 200_000;
    assert_eq!(said(0, Some(0)), None);
    assert_eq!(said(HEAP, Some(RESIDENT)), None);
    assert_eq!(said(HEAP, None), None);
    let heap = said(HEAP + 1, None).unwrap();
    assert!(
        heap.starts_with("now: 1148577 bytes more are on the heap"),
        "{heap}"
    );
    let resident = said(0, Some(RESIDENT + 1)).unwrap();
    assert!(
        resident.contains("resident than at the start, 8588 for each of 1000"),
        "{resident}"
    );
    let less = Used {
        heap: 0,
        resident: Some(0),
    };
    assert_eq!(less.check(START, "now", 1_000, (100, 200)), Ok(()));
}

#[test]
fn a_message_that_is_missing_or_comes_twice_is_told() {
    assert_eq!(check_count("messages", 7, 7), Ok(()));
    for counted in [6, 8] {
        let error = check_count("messages", counted, 7).unwrap_err();
        assert_eq!(error, format!("messages: {counted}, where it must be 7"));
    }
}
