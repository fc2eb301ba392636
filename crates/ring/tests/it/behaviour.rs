//! The promises of a ring, each in a test of its own.

#![cfg(not(ganger_loom))]

use ganger_ring::{Snapshot, ring};

fn numbers(snapshot: &Snapshot<2>) -> Vec<u64> {
    snapshot.records.iter().map(|record| record[0]).collect()
}

#[test]
fn an_empty_ring_has_an_empty_snapshot() {
    let (_writer, reader) = ring::<2>(64);
    let snapshot = reader.snapshot();
    assert_eq!((snapshot.lost, snapshot.records.len()), (0, 0));
    assert_eq!(reader.written(), 0);
}

#[test]
fn a_ring_that_was_never_full_has_lost_nothing() {
    let (writer, reader) = ring::<2>(64);
    for number in 0..3 {
        writer.push([number, number]);
    }
    let snapshot = reader.snapshot();
    assert_eq!((snapshot.lost, numbers(&snapshot)), (0, vec![0, 1, 2]));
}

/// Checks that the next slot, which may be half overwritten at any moment, never counts.
#[test]
fn a_full_ring_has_all_but_one_of_its_slots() {
    let (writer, reader) = ring::<2>(64);
    for number in 0..10 {
        writer.push([number, number]);
    }
    let snapshot = reader.snapshot();
    assert_eq!((snapshot.lost, numbers(&snapshot)), (7, vec![7, 8, 9]));
    assert_eq!(reader.written(), 10);
}

#[test]
fn the_size_is_a_power_of_two_that_fits() {
    let slots = |bytes| ring::<2>(bytes).1.slots();
    assert_eq!(slots(64), 4);
    assert_eq!(slots(127), 4);
    assert_eq!(slots(128), 8);
    assert_eq!(ring::<4>(1 << 20).1.slots(), 1 << 15);
    assert_eq!(ring::<3>(1_000).1.slots(), 32);
    assert_eq!([0, 1, 47].map(slots), [2, 2, 2], "two at least");
}

#[test]
fn every_reader_sees_the_same_and_outlives_the_writer() {
    let (writer, reader) = ring::<2>(64);
    writer.push([1, 2]);
    let readers = [reader.clone(), writer.reader(), reader];
    drop(writer);
    for reader in readers {
        assert_eq!(reader.snapshot().records, [[1, 2]]);
    }
}

#[test]
#[should_panic(expected = "one word at least")]
fn a_record_without_words_is_refused() {
    drop(ring::<0>(64));
}

#[test]
fn both_ends_say_what_they_are() {
    let (writer, reader) = ring::<2>(64);
    writer.push([1, 2]);
    assert_eq!(format!("{writer:?}"), "Writer { written: 1, .. }");
    assert_eq!(format!("{reader:?}"), "Reader { slots: 4, .. }");
}
