//! The promises of a wheel, each in a test of its own.

use ganger_wheel::{Key, Wheel};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

const TICK: u64 = Wheel::<()>::TICK;
const ALL: usize = usize::MAX;

fn fired<T>(wheel: &mut Wheel<T>, now: u64) -> Vec<T> {
    let mut fired = Vec::new();
    assert!(!wheel.advance(now, ALL, |value| fired.push(value)));
    fired
}

#[test]
fn never_early_and_at_most_a_tick_late() {
    for at in [1, TICK - 1, TICK, TICK + 1, 70 * TICK, (1 << 40) + 5] {
        let mut wheel = Wheel::new();
        wheel.insert(at, ());
        let end = at.div_ceil(TICK) * TICK;
        assert_eq!(wheel.next_due(), Some(end));
        assert!(fired(&mut wheel, end - 1).is_empty());
        assert_eq!(fired(&mut wheel, end).len(), 1);
    }
}

#[test]
fn timers_fire_in_the_order_of_their_ticks() {
    let mut wheel = Wheel::new();
    let mut ticks = [5, 1 << 30, 64, 4_095, 4_096, 1 << 20, 63, 65, 6];
    for tick in ticks {
        wheel.insert(tick * TICK, tick);
    }
    ticks.sort_unstable();
    assert_eq!(fired(&mut wheel, 1 << 41), ticks);
}

#[test]
fn what_is_late_already_fires_at_the_next_call() {
    let mut wheel = Wheel::new();
    assert!(fired(&mut wheel, 100 * TICK).is_empty());
    wheel.insert(0, "zero");
    assert_eq!(wheel.next_due(), Some(100 * TICK));
    wheel.insert(101 * TICK, "later");
    assert_eq!(fired(&mut wheel, 100 * TICK), ["zero"]);
    assert_eq!(wheel.next_due(), Some(101 * TICK));
}

#[test]
fn the_end_of_time_is_never() {
    let mut wheel = Wheel::new();
    let last = u64::MAX - TICK + 1;
    for at in [u64::MAX, u64::MAX - 5, last + 1] {
        wheel.insert(at, at);
    }
    assert_eq!(wheel.next_due(), None);
    let key = wheel.insert(last, last);
    assert_eq!(wheel.next_due(), Some(last));
    assert!(fired(&mut wheel, last - 1).is_empty());
    assert_eq!(fired(&mut wheel, u64::MAX), [last]);
    assert_eq!((wheel.cancel(key), wheel.len()), (None, 3));
}

#[test]
fn time_does_not_go_back() {
    let mut wheel = Wheel::new();
    assert!(fired(&mut wheel, 50 * TICK).is_empty());
    wheel.insert(40 * TICK, ());
    assert_eq!(fired(&mut wheel, 10 * TICK), [()]);
}

/// Returns a wheel with a thousand timers in a single slot, far in the future.
fn one_slot() -> (Wheel<u64>, Vec<Key>) {
    let mut wheel = Wheel::new();
    let at = |id| (1 << 40) + 4 * id * TICK;
    let keys = (0..1_000).map(|id| wheel.insert(at(id), id)).collect();
    (wheel, keys)
}

#[test]
fn a_call_moves_no_more_than_it_may() {
    let (mut wheel, _) = one_slot();
    let mut calls = 1;
    while wheel.advance(1 << 40, 10, |id| assert_eq!(id, 0)) {
        calls += 1;
    }
    // Each timer moves once, and a single timer fires.
    assert_eq!(calls, 101);
    assert_eq!(wheel.len(), 999);
}

#[test]
fn nothing_may_be_moved_with_most_of_zero() {
    let (mut wheel, _) = one_slot();
    assert!(!wheel.advance(TICK, 0, drop));
    assert!(wheel.advance(u64::MAX, 0, drop));
    assert_eq!(wheel.len(), 1_000);
    // `most` is exactly the number of moves and fired timers, so nothing remains to be done.
    assert!(!wheel.advance(1 << 40, 1_001, drop));
}

#[test]
fn the_earliest_is_known_while_a_slot_is_being_emptied() {
    let (mut wheel, keys) = one_slot();
    let end = 1 << 40;
    for (id, key) in (0..).zip(keys) {
        // A few timers move at each call; some of the cancelled timers have moved.
        wheel.advance(end - 1, 7, |_| panic!("early"));
        let next = wheel.next_due().unwrap();
        assert!(
            (end..=end + 4 * id * TICK).contains(&next),
            "{id} at {next}"
        );
        assert_eq!(wheel.cancel(key), Some(id));
        wheel.advance(end, 7, |_| assert_eq!(id, 0));
    }
    assert_eq!(wheel.next_due(), None);
}

/// Checks that the next moment is `next`, or `gone` of a removed timer. In the second case nothing
/// fires at `gone`, and `next_due` then returns `next`.
fn assert_next<T: std::fmt::Debug>(wheel: &mut Wheel<T>, gone: u64, next: u64) {
    assert!([Some(gone), Some(next)].contains(&wheel.next_due()));
    assert_eq!(fired(wheel, gone).len(), 0);
    assert_eq!(wheel.next_due(), Some(next));
}

/// Returns a wheel with two timers of the same slot; the earlier timer has moved down from the
/// slot.
fn half_moved() -> (Wheel<&'static str>, Key) {
    let mut wheel = Wheel::new();
    wheel.insert((4_096 + 200) * TICK, "later");
    let key = wheel.insert((4_096 + 64) * TICK, "earlier");
    assert!(wheel.advance(4_096 * TICK, 1, |_| panic!("early")));
    assert_eq!(wheel.next_due(), Some((4_096 + 64) * TICK));
    (wheel, key)
}

#[test]
fn the_earliest_that_has_moved_down_is_cancelled() {
    let (mut wheel, key) = half_moved();
    assert_eq!(wheel.cancel(key), Some("earlier"));
    assert_next(&mut wheel, (4_096 + 64) * TICK, (4_096 + 200) * TICK);
}

#[test]
fn the_earliest_that_has_moved_down_is_reset_in_its_slot_or_drained() {
    let (mut wheel, key) = half_moved();
    assert!(wheel.reset(key, (4_096 + 70) * TICK).is_some());
    assert_next(&mut wheel, (4_096 + 64) * TICK, (4_096 + 70) * TICK);
    let (mut wheel, _) = half_moved();
    assert_eq!(wheel.drain().next(), Some("earlier"));
    assert_next(&mut wheel, (4_096 + 64) * TICK, (4_096 + 200) * TICK);
}

#[test]
fn the_earliest_is_known_after_two_have_gone() {
    let (mut wheel, keys) = one_slot();
    for id in [0, 500] {
        assert!(wheel.cancel(keys[id]).is_some());
    }
    assert_next(&mut wheel, 1 << 40, (1 << 40) + 4 * TICK);
}

/// Checks that cancelling timers in the order of their deadlines costs no more than another order.
#[test]
fn what_is_cancelled_costs_one_moment_at_most() {
    let (mut wheel, keys) = one_slot();
    let end = 1 << 40;
    for key in &keys[..900] {
        assert!(wheel.cancel(*key).is_some());
        assert_eq!(wheel.next_due(), Some(end), "it is not looked for");
    }
    assert_next(&mut wheel, end, end + 4 * 900 * TICK);
    for key in &keys[900..] {
        assert!(wheel.cancel(*key).is_some());
    }
    assert_eq!(wheel.next_due(), None);
}

#[test]
fn the_earliest_is_known_after_it_has_been_drained() {
    let mut wheel = Wheel::new();
    for tick in (0..10).rev() {
        wheel.insert((1 << 40) + tick * TICK, tick);
    }
    assert_eq!(wheel.drain().next(), Some(0));
    assert_next(&mut wheel, 1 << 40, (1 << 40) + TICK);
}

#[test]
fn a_slot_that_is_used_again_waits_for_its_time() {
    let mut wheel = Wheel::new();
    // `advance` is emptying a slot of level 1 when the last timers of the slot are cancelled.
    let keys = [1, 2, 3].map(|number| wheel.insert((64 + number) * TICK, number));
    assert!(wheel.advance(64 * TICK, 1, |_| panic!("early")));
    let cancelled = keys.map(|key| wheel.cancel(key));
    assert_eq!(cancelled, [Some(1), Some(2), Some(3)]);
    assert!(!wheel.advance(64 * TICK, 1, |_| panic!("early")));
    // The same slot, a round of the level later.
    assert!(fired(&mut wheel, 4_096 * TICK).is_empty());
    wheel.insert((4_096 + 65) * TICK, 4);
    assert!(fired(&mut wheel, 4_100 * TICK).is_empty());
    assert_eq!(fired(&mut wheel, (4_096 + 65) * TICK), [4]);
}

#[test]
fn a_reset_moves_the_deadline_and_keeps_the_key() {
    let mut wheel = Wheel::new();
    let far = 1 << 40;
    let key = wheel.insert(far, "moved");
    // In the same slot, later and earlier, and then to other slots.
    for at in [far - 3, far, 5 * TICK, far, u64::MAX, 7 * TICK] {
        let before = wheel.deadline(key);
        assert_eq!(wheel.reset(key, at), before);
        assert_eq!(wheel.deadline(key), Some(at));
        assert_eq!(wheel.get(key), Some(&"moved"));
        let next = at.div_ceil(TICK).checked_mul(TICK);
        assert_eq!(wheel.next_due(), next);
    }
    assert_eq!(fired(&mut wheel, far), ["moved"]);
    assert_eq!(wheel.reset(key, 0), None);
}

#[test]
fn the_later_of_a_slot_is_reset_and_becomes_the_earliest() {
    let mut wheel = Wheel::new();
    wheel.insert((4_096 + 200) * TICK, "earlier");
    let key = wheel.insert((4_096 + 210) * TICK, "later");
    assert!(wheel.reset(key, (4_096 + 100) * TICK).is_some());
    assert_eq!(wheel.next_due(), Some((4_096 + 100) * TICK));
}

#[test]
fn no_key_is_used_twice_although_blocks_come_and_go() {
    let mut wheel = Wheel::new();
    let mut stale = Vec::new();
    for _ in 0..4 {
        let keys: Vec<_> = (0..2_000).map(|id| wheel.insert(id, id)).collect();
        assert!(stale.iter().all(|&key| wheel.get(key).is_none()));
        wheel.clear();
        wheel.shrink();
        stale.extend(keys);
        assert!(stale.iter().all(|&key| wheel.cancel(key).is_none()));
    }
    assert_eq!(mem::size_of::<Key>(), 8);
    assert_eq!(mem::size_of::<Option<Key>>(), 8);
}

#[test]
fn a_shrink_keeps_what_waits() {
    let (mut wheel, keys) = one_slot();
    let (left, gone): (Vec<_>, Vec<_>) = (0..).zip(keys).partition(|(id, _)| id % 7 == 3);
    for (id, key) in gone {
        assert_eq!(wheel.cancel(key), Some(id));
    }
    wheel.shrink();
    for &(id, key) in &left {
        assert_eq!(wheel.get(key), Some(&id));
    }
    assert_eq!(wheel.next_due(), Some((1 << 40) + 4 * 3 * TICK));
    // Each remaining timer is found at its new place.
    let (fire, cancel): (Vec<_>, Vec<_>) = left.into_iter().partition(|(id, _)| id % 2 == 1);
    for (id, key) in cancel {
        assert_eq!(wheel.cancel(key), Some(id));
    }
    let ids: Vec<_> = fire.into_iter().map(|(id, _)| id).collect();
    assert_eq!(fired(&mut wheel, 1 << 41), ids);
}

#[test]
fn a_panic_loses_one_value() {
    let mut wheel = Wheel::new();
    let value = Rc::new(());
    let keys = [1, 2, 3, 1 << 20].map(|at| wheel.insert(at, Rc::clone(&value)));
    for left in [3, 2, 1] {
        let fire = || wheel.advance(TICK, ALL, |_| panic!("on purpose"));
        assert!(catch_unwind(AssertUnwindSafe(fire)).is_err());
        assert_eq!((wheel.len(), Rc::strong_count(&value)), (left, left + 1));
        let live = keys.iter().filter(|&&key| wheel.get(key).is_some());
        assert_eq!(live.count(), left);
    }
    assert!(fired(&mut wheel, TICK).is_empty());
    assert_eq!(fired(&mut wheel, 1 << 20).len(), 1);
}

#[test]
fn a_wheel_that_goes_drops_its_values() {
    let value = Rc::new(());
    let mut wheel = Wheel::default();
    for at in 0..1_000 {
        wheel.insert(at << 30, Rc::clone(&value));
    }
    assert_eq!(wheel.drain().take(300).count(), 300);
    assert_eq!((wheel.len(), Rc::strong_count(&value)), (700, 701));
    assert_eq!(format!("{wheel:?}"), "Wheel { len: 700, .. }");
    drop(wheel);
    assert_eq!(Rc::strong_count(&value), 1);
}
