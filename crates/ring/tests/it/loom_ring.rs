//! A reader while the writer goes on, and overtakes it.

use ganger_ring::{Reader, Snapshot, Writer, ring};
use ganger_sync::{model, thread};

/// Writes records whose words depend on their number, and on nothing else.
fn push(writer: &Writer<2>, numbers: std::ops::Range<u64>) {
    for number in numbers {
        writer.push([number, number + 100]);
    }
}

/// Checks for whole records without a gap after the lost records, `written` in all at most.
fn check(snapshot: &Snapshot<2>, written: u64) {
    let mut number = snapshot.lost;
    for record in &snapshot.records {
        assert_eq!(*record, [number, number + 100]);
        number += 1;
    }
    assert!(number <= written, "{number} of {written}");
}

fn beside(slots: usize, before: u64, meanwhile: u64) {
    let (writer, reader) = ring::<2>(slots * 16);
    push(&writer, 0..before);
    let copier = thread::spawn(move || reader.snapshot());
    push(&writer, before..before + meanwhile);
    let snapshot = copier.join().unwrap();
    check(&snapshot, before + meanwhile);
    let seen = snapshot.lost + snapshot.records.len() as u64;
    assert!(seen >= before, "what was written before is seen or lost");
}

#[test]
fn a_reader_sees_whole_records_of_a_ring_that_fills() {
    model::check(4, || beside(4, 0, 3));
}

#[test]
fn a_reader_sees_whole_records_of_a_ring_that_is_overwritten() {
    model::check(4, || beside(4, 4, 2));
}

#[test]
fn a_reader_that_is_overtaken_drops_what_was_overwritten() {
    model::check(4, || beside(2, 2, 3));
}

#[test]
fn two_readers_see_the_same_records() {
    model::check(3, || {
        let (writer, reader) = ring::<2>(2 * 16);
        push(&writer, 0..1);
        let copy = |reader: Reader<2>| thread::spawn(move || reader.snapshot());
        let readers = [copy(reader.clone()), copy(reader)];
        push(&writer, 1..3);
        for reader in readers {
            check(&reader.join().unwrap(), 3);
        }
    });
}

/// Checks that the writer may change threads: the next thread goes on where the last has stopped.
#[test]
fn a_writer_may_move() {
    model::check(4, || {
        let (writer, reader) = ring::<2>(2 * 16);
        let first = thread::spawn(move || {
            push(&writer, 0..2);
            writer
        });
        check(&reader.snapshot(), 2);
        let writer = first.join().unwrap();
        push(&writer, 2..3);
        let snapshot = reader.snapshot();
        assert_eq!((snapshot.lost, snapshot.records), (2, vec![[2, 102]]));
    });
}

/// Shares a place for a writer among threads, in turn, while another thread copies.
#[test]
fn threads_may_write_one_after_another() {
    model::check(4, || {
        let (writer, reader) = ring::<2>(2 * 16);
        let writer = std::sync::Arc::new(writer.share());
        let copier = thread::spawn(move || reader.snapshot());
        let first = {
            let writer = std::sync::Arc::clone(&writer);
            thread::spawn(move || (0..2).for_each(|number| writer.push([number, number + 100])))
        };
        first.join().unwrap();
        writer.push([2, 102]);
        check(&copier.join().unwrap(), 3);
        let snapshot = writer.reader().snapshot();
        assert_eq!((snapshot.lost, snapshot.records), (2, vec![[2, 102]]));
    });
}
