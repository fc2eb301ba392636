//! Models of the table: readers against the thread that frees a slot and fills it again.

use crate::slots::Slots;
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::sync::Arc;
use ganger_sync::{fence, model, thread};

type Table = Arc<Slots<Arc<u32>>>;

/// Returns a table with one value, and its id.
fn table(value: u32) -> (Table, u64) {
    let table: Table = Arc::new(Slots::new());
    let id = table.claim_fresh(1).start;
    // SAFETY: the slot has just been claimed.
    unsafe { table.fill(id, Arc::new(value)) };
    (table, id)
}

/// Looks an id up; checks that a value found is `value`. Returns whether the id has a value.
fn look(table: &Table, id: u64, value: u32) -> bool {
    let found = table.get(id);
    found.inspect(|found| assert_eq!(**found, value)).is_some()
}

// pins: P7
#[test]
fn a_reader_against_the_end_of_its_value_and_the_next_one() {
    model::check(4, || {
        let (table, first) = table(1);
        let reader = {
            let table = Arc::clone(&table);
            thread::spawn(move || look(&table, first, 1))
        };
        // SAFETY: the only time for this id.
        let (value, second) = unsafe { table.free(first) };
        assert!(value.is_some_and(|value| *value == 1));
        let second = second.unwrap();
        assert_ne!(first, second);
        // SAFETY: the slot is this thread's since it freed it.
        unsafe { table.fill(second, Arc::new(2)) };
        assert!(look(&table, second, 2));
        assert!(!look(&table, first, 1));
        reader.join().unwrap();
    });
}

/// Guesses the id of a value while the value is being filled in.
// pins: P7
#[test]
fn a_reader_against_a_value_that_comes() {
    model::check(4, || {
        let table: Table = Arc::new(Slots::new());
        let id = table.claim_fresh(1).start;
        let reader = {
            let table = Arc::clone(&table);
            thread::spawn(move || look(&table, id, 1))
        };
        // SAFETY: the slot has just been claimed.
        unsafe { table.fill(id, Arc::new(1)) };
        reader.join().unwrap();
        assert!(look(&table, id, 1));
    });
}

#[test]
fn two_readers_against_the_end_of_their_value() {
    model::check(4, || {
        let (table, id) = table(1);
        let readers = [0, 1].map(|_| {
            let table = Arc::clone(&table);
            thread::spawn(move || look(&table, id, 1))
        });
        // SAFETY: the only time for this id.
        assert!(unsafe { table.free(id) }.0.is_some());
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

/// Checks that the first thread that needs the second bucket allocates it.
#[test]
fn two_claimers_of_fresh_slots() {
    model::check(4, || {
        let table: Table = Arc::new(Slots::new());
        let claim = |table: &Table, value: u32| {
            let ids = table.claim_fresh(2);
            for id in ids.clone() {
                // SAFETY: the slot has just been claimed.
                unsafe { table.fill(id, Arc::new(value)) };
                assert!(look(table, id, value));
            }
            ids
        };
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || claim(&table, 1))
        };
        let mine = claim(&table, 2);
        let theirs = other.join().unwrap();
        assert!(mine.end <= theirs.start || theirs.end <= mine.start);
        assert_eq!(table.ids().count(), 4);
    });
}

/// Makes a process visible while the scheduler is stopped.
// pins: D1, D3
#[test]
fn a_thread_that_fills_a_slot_sees_the_stop_or_is_seen() {
    model::check(4, || {
        let table: Table = Arc::new(Slots::new());
        let id = table.claim_fresh(1).start;
        let is_stopping = Arc::new(AtomicBool::new(false));
        let stopper = {
            let (table, is_stopping) = (Arc::clone(&table), Arc::clone(&is_stopping));
            thread::spawn(move || {
                // Ordering: SeqCst, like the flags of a scheduler's shutdown.
                is_stopping.store(true, Ordering::SeqCst);
                fence::heavy();
                table.ids().any(|seen| seen == id)
            })
        };
        // SAFETY: the slot has just been claimed.
        unsafe { table.fill(id, Arc::new(1)) };
        fence::light();
        // Ordering: SeqCst, like the flags of a scheduler's shutdown.
        let sees = is_stopping.load(Ordering::SeqCst);
        let is_seen = stopper.join().unwrap();
        assert!(sees || is_seen, "a process is left behind");
    });
}
