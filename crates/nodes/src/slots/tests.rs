//! Tests of the table of slots: numbers, generations, and returned values.

use super::*;
use ganger_sync::atomic::AtomicBool;
use proptest::prelude::*;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

#[test]
fn buckets_follow_one_another() {
    let mut expected = (0, 0);
    for index in 0..100_000 {
        assert_eq!(locate(index), expected, "slot {index}");
        expected.1 += 1;
        if expected.1 == size_of_bucket(expected.0) {
            expected = (expected.0 + 1, 0);
        }
    }
    let (bucket, place) = locate(Slots::<u8>::most() - 1);
    assert_eq!((bucket, place), (BUCKETS - 1, size_of_bucket(bucket) - 1));
}

#[test]
fn a_table_of_large_values_is_made_and_dropped_on_a_stack_smaller_than_a_value() {
    const LARGE: usize = 320 * 1_024;
    let thread = std::thread::Builder::new().stack_size(LARGE / 2).spawn(|| {
        let slots = Slots::<[u8; LARGE]>::new();
        assert_eq!(slots.claim_fresh(3).count(), 3);
        assert_eq!(slots.ids().count(), 0);
    });
    thread.unwrap().join().unwrap();
}

// pins: P7
#[test]
fn a_slot_whose_generations_are_used_up_is_never_used_again() {
    let slots = Slots::new();
    let first = slots.claim_fresh(1).start;
    let [before, last] = [2, 1].map(|left| first.wrapping_sub((1 + left) * GENERATION));
    // SAFETY: the slot is claimed, and vacant.
    unsafe { slots.fill(before, 6) };
    // SAFETY: the only time for this id.
    assert_eq!(unsafe { slots.free(before) }, (Some(6), Some(last)));
    // SAFETY: the slot is claimed, and vacant.
    unsafe { slots.fill(last, 7) };
    assert_eq!(slots.get(last), Some(7));
    // SAFETY: the only time for this id.
    assert_eq!(unsafe { slots.free(last) }, (Some(7), None));
    assert_eq!(slots.get(last), None);
    assert_eq!(slots.get(first), None);
}

#[test]
fn what_is_left_is_dropped_with_the_table() {
    let value = Arc::new(());
    let slots = Slots::new();
    for id in slots.claim_fresh(3) {
        // SAFETY: the slot has just been claimed.
        unsafe { slots.fill(id, Arc::clone(&value)) };
    }
    drop(slots);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[derive(Debug, Clone)]
enum Op {
    Claim(u32),
    Fill,
    Free(usize),
    Look(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        1 => (0..70_u32).prop_map(Op::Claim),
        6 => Just(Op::Fill),
        4 => any::<usize>().prop_map(Op::Free),
        4 => any::<usize>().prop_map(Op::Look),
    ]
}

proptest! {
    // pins: P7
    #[test]
    fn a_table_does_what_a_map_does(ops in proptest::collection::vec(op(), 0..300)) {
        let slots = Slots::new();
        let (mut free, mut ever, mut model) = (Vec::new(), Vec::new(), HashMap::new());
        for op in ops {
            match op {
                Op::Claim(count) => {
                    let claimed = slots.claim_fresh(count);
                    prop_assert_eq!(claimed.end - claimed.start, u64::from(count));
                    free.extend(claimed);
                }
                Op::Fill => {
                    if let Some(id) = free.pop() {
                        prop_assert!(id >= FIRST_ID && !ever.contains(&id), "{id} was used before");
                        // SAFETY: the slot is claimed, and vacant.
                        unsafe { slots.fill(id, ever.len()) };
                        model.insert(id, ever.len());
                        ever.push(id);
                    }
                }
                Op::Free(nth) if !ever.is_empty() => {
                    let id = ever[nth % ever.len()];
                    if let Some(value) = model.remove(&id) {
                        // SAFETY: the model has the id only once, so this is its only `free`.
                        let (freed, next) = unsafe { slots.free(id) };
                        prop_assert_eq!(freed, Some(value));
                        prop_assert_eq!(next, Some(id + GENERATION));
                        free.extend(next);
                    }
                }
                Op::Look(nth) if !ever.is_empty() => {
                    let id = ever[nth % ever.len()];
                    prop_assert_eq!(slots.get(id), model.get(&id).copied());
                }
                Op::Free(_) | Op::Look(_) => prop_assert_eq!(slots.get(7), None),
            }
        }
        let mut ids: Vec<u64> = slots.ids().collect();
        let mut expected: Vec<u64> = model.into_keys().collect();
        ids.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(ids, expected);
    }
}

/// Looks up ids while values come and go: an id finds its own value or none.
#[test]
fn an_id_finds_its_own_value_or_nothing() {
    let slots = Arc::new(Slots::<Arc<u64>>::new());
    let newest = Arc::new(AtomicU64::new(FIRST_ID));
    let is_over = Arc::new(AtomicBool::new(false));
    let readers = [0, 1].map(|_| {
        let (slots, newest, is_over) = (slots.clone(), newest.clone(), is_over.clone());
        std::thread::spawn(move || {
            // Ordering: Relaxed here and below: only a hint which id to look up.
            while !is_over.load(Ordering::Relaxed) {
                // Ordering: Relaxed, because the id is a hint.
                let id = newest.load(Ordering::Relaxed);
                for id in [id, id.saturating_sub(GENERATION)] {
                    assert!(slots.get(id).is_none_or(|value| *value == id));
                }
            }
        })
    });
    let mut claimed: VecDeque<u64> = slots.claim_fresh(3).collect();
    for _ in 0..100_000 {
        let id = claimed.pop_front().unwrap();
        // SAFETY: the slot is claimed, and vacant.
        unsafe { slots.fill(id, Arc::new(id)) };
        // Ordering: Relaxed, because the id is a hint.
        newest.store(id, Ordering::Relaxed);
        assert_eq!(slots.get(id).as_deref(), Some(&id));
        // SAFETY: the only time for this id.
        let (value, next) = unsafe { slots.free(id) };
        assert!(value.is_some_and(|value| *value == id));
        claimed.extend(next);
    }
    // Ordering: Relaxed, because the readers may stop late.
    is_over.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
}
