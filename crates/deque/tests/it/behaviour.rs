//! The promises of the documentation, on one thread: bounds, drops, auto traits.
#![cfg(not(ganger_loom))]

use ganger_deque::{Steal, Stealer, Worker};
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, Location, catch_unwind};
use std::rc::Rc;

/// The documented maximum of items in a claim.
const MAX_EXPOSED: usize = 32_767;

fn filled(items: usize) -> Worker<usize> {
    let worker = Worker::new();
    for item in 0..items {
        worker.push(item);
    }
    worker
}

#[test]
fn half_is_rounded_up_whether_exposed_or_not() {
    for (items, limit, expected) in [(1, 9, 1), (2, 9, 1), (5, 9, 3), (9, 2, 2)] {
        for exposed in [false, true] {
            let (victim, dest) = (filled(items), Worker::with_capacity(1));
            if exposed {
                victim.expose();
            }
            let outcome = victim.stealer().steal_half_into(&dest, limit);
            assert_eq!(outcome, Steal::Success(expected));
            assert_eq!(victim.len(), items - expected);
            for item in (0..expected).rev() {
                assert_eq!(dest.pop(), Some(item));
            }
        }
    }
}

#[test]
fn the_oldest_of_a_half_is_returned_and_the_others_are_kept() {
    for (items, limit, expected) in [(1, 9, 1), (2, 9, 1), (5, 9, 3), (9, 2, 2), (9, 1, 1)] {
        for exposed in [false, true] {
            let (victim, dest) = (filled(items), Worker::with_capacity(1));
            if exposed {
                victim.expose();
            }
            let outcome = victim.stealer().steal_half_and_pop(&dest, limit);
            assert_eq!(outcome, Steal::Success(0));
            assert_eq!(victim.len(), items - expected);
            for item in (1..expected).rev() {
                assert_eq!(dest.pop(), Some(item));
            }
            assert_eq!(dest.pop(), None);
        }
    }
}

#[test]
fn a_deque_larger_than_the_exposed_field_is_taken_in_several_claims() {
    let items = 3 * MAX_EXPOSED;
    for exposed in [false, true] {
        let (victim, dest) = (filled(items), Worker::new());
        if exposed {
            victim.expose();
        }
        let outcome = victim.stealer().steal_half_into(&dest, usize::MAX);
        assert_eq!(outcome, Steal::Success(MAX_EXPOSED));
        for item in (MAX_EXPOSED..items).rev() {
            assert_eq!(victim.pop(), Some(item));
        }
        assert_eq!(victim.pop(), None);
        for item in (0..MAX_EXPOSED).rev() {
            assert_eq!(dest.pop(), Some(item));
        }
    }
}

#[test]
fn one_by_one_the_oldest_goes_first() {
    let worker = filled(2 * MAX_EXPOSED + 10);
    for item in 0..2 * MAX_EXPOSED + 10 {
        assert_eq!(worker.stealer().steal(), Steal::Success(item));
    }
    assert_eq!(worker.stealer().steal(), Steal::Empty);
    assert_eq!(worker.pop(), None);
}

#[test]
fn what_is_appended_goes_behind_what_is_there() {
    let (victim, dest) = (filled(4), Worker::with_capacity(1));
    dest.push(100);
    assert_eq!(
        victim.stealer().steal_half_into(&dest, 9),
        Steal::Success(2)
    );
    assert_eq!(dest.stealer().steal(), Steal::Success(100));
    assert_eq!(
        (dest.pop(), dest.pop(), dest.pop()),
        (Some(1), Some(0), None)
    );
}

#[test]
fn nothing_is_taken_with_limit_zero_or_from_oneself() {
    let (worker, dest) = (filled(4), Worker::new());
    assert_eq!(worker.stealer().steal_half_into(&dest, 0), Steal::Empty);
    assert_eq!(worker.stealer().steal_half_into(&worker, 9), Steal::Empty);
    assert_eq!(worker.stealer().steal_half_and_pop(&dest, 0), Steal::Empty);
    assert_eq!(
        worker.stealer().steal_half_and_pop(&worker, 9),
        Steal::Empty
    );
    assert_eq!((worker.len(), dest.len()), (4, 0));
}

#[test]
fn passing_through_does_not_make_it_grow() {
    let worker = Worker::with_capacity(4);
    for item in 0..100_000 {
        worker.push(item);
        worker.push(item);
        assert_eq!(worker.stealer().steal(), Steal::Success(item));
        assert_eq!(worker.stealer().steal(), Steal::Success(item));
    }
    assert_eq!(worker.capacity(), 4);
}

#[test]
fn handles_are_small() {
    assert!(Worker::<u64>::new().capacity() * size_of::<u64>() <= 256);
    assert!(size_of::<Worker<u64>>() <= 64, "a cache line");
    assert_eq!(size_of::<Stealer<u64>>(), size_of::<usize>());
}

#[test]
fn shrinking_keeps_the_items_and_leaves_room_for_a_few() {
    let worker = filled(1_000);
    let stealer = worker.stealer();
    for _ in 0..900 {
        assert!(stealer.steal().is_success());
    }
    worker.shrink_to_fit();
    assert_eq!((worker.len(), worker.capacity()), (100, 128));
    worker.shrink_to_fit();
    assert_eq!(worker.capacity(), 128);
    assert_eq!(stealer.steal(), Steal::Success(900));
    for item in (901..1_000).rev() {
        assert_eq!(worker.pop(), Some(item));
    }
    worker.shrink_to_fit();
    assert_eq!(worker.capacity(), 16);
    let small = Worker::<u8>::with_capacity(2);
    small.shrink_to_fit();
    assert_eq!(small.capacity(), 2, "it never grows");
}

#[test]
fn items_without_size_are_counted() {
    let worker = Worker::new();
    for _ in 0..1_000 {
        worker.push(());
    }
    assert_eq!(worker.stealer().steal(), Steal::Success(()));
    assert_eq!(std::iter::from_fn(|| worker.pop()).count(), 999);
}

#[test]
#[should_panic(expected = "capacity overflow")]
fn too_large_a_capacity_is_refused() {
    let _worker = Worker::<()>::with_capacity(usize::MAX);
}

/// Counts its drops. The destructor of some values panics.
struct Fragile<'a> {
    drops: &'a Cell<u32>,
    panics: bool,
}

impl Drop for Fragile<'_> {
    fn drop(&mut self) {
        self.drops.set(self.drops.get() + 1);
        assert!(!self.panics, "a destructor that panics");
    }
}

#[test]
fn a_panicking_destructor_neither_leaks_nor_drops_twice() {
    for exposed in [false, true] {
        for culprit in 0..10 {
            let drops: Vec<_> = (0..10).map(|_| Cell::new(0)).collect();
            let worker = Worker::with_capacity(1);
            for (item, drops) in drops.iter().enumerate() {
                let panics = item == culprit;
                worker.push(Fragile { drops, panics });
            }
            if exposed {
                worker.expose();
            }
            let stealer = worker.stealer();
            let outcome = catch_unwind(AssertUnwindSafe(|| drop(worker)));
            assert!(outcome.is_err());
            assert!(stealer.is_empty() && stealer.steal().is_empty());
            drop(stealer);
            assert!(drops.iter().all(|drops| drops.get() == 1), "{drops:?}");
        }
    }
}

#[test]
fn what_is_left_goes_with_the_worker_though_a_stealer_remains() {
    let item = Rc::new(());
    let worker = Worker::new();
    for _ in 0..40 {
        worker.push(Rc::clone(&item));
    }
    let stealer = worker.stealer();
    let taken = stealer.steal();
    assert_eq!(Rc::strong_count(&item), 41);
    drop(worker);
    assert_eq!(Rc::strong_count(&item), 2);
    assert!(taken.is_success());
    assert!(stealer.clone().steal().is_empty());
}

#[test]
fn debug_shows_lengths() {
    let worker = filled(3);
    assert_eq!(format!("{worker:?}"), "Worker { len: 3, capacity: 16, .. }");
    assert_eq!(format!("{:?}", worker.stealer()), "Stealer { len: 3, .. }");
    assert!(Worker::<u8>::default().is_empty());
}

/// The default of [`implements!`], for a type that does not implement the trait.
trait Otherwise {
    const IMPLEMENTS: bool = false;
}

impl<T: ?Sized> Otherwise for T {}

/// Returns whether the type implements the trait. An inherent constant whose bound holds takes
/// precedence over the constant of [`Otherwise`].
macro_rules! implements {
    ($type:ty: $trait:ident) => {{
        struct Probe<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code, reason = "not used where the bound does not hold")]
        impl<T: ?Sized + $trait> Probe<T> {
            const IMPLEMENTS: bool = true;
        }
        <Probe<$type>>::IMPLEMENTS
    }};
}

const _: () = {
    assert!(implements!(Worker<Box<u8>>: Send) && !implements!(Worker<Box<u8>>: Sync));
    assert!(implements!(Stealer<Box<u8>>: Send) && implements!(Stealer<Box<u8>>: Sync));
    // Only shared items need to be `Sync`.
    assert!(implements!(Worker<Cell<u8>>: Send) && implements!(Stealer<Cell<u8>>: Sync));
    // Items that stay on their thread keep their deque there.
    assert!(!implements!(Worker<Rc<u8>>: Send) && !implements!(Stealer<Rc<u8>>: Send));
    assert!(!implements!(Stealer<Rc<u8>>: Sync));
    assert!(implements!(Worker<Rc<u8>>: Unpin) && implements!(Stealer<Rc<u8>>: Clone));
    assert!(!implements!(Worker<u8>: Clone));
};

thread_local! {
    static LINE: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn too_large_a_capacity_is_refused_where_it_is_asked_for() {
    let others = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        LINE.set(info.location().map_or(0, Location::line));
        others(info);
    }));
    let too_large = || drop(Worker::<u8>::with_capacity(usize::MAX));
    let (line, asked) = (line!() - 1, catch_unwind(too_large));
    assert!(asked.is_err());
    assert_eq!(LINE.get(), line);
}
