//! A value of any shape comes out whole, or is dropped once.

use super::*;
use proptest::prelude::*;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the living values of a test.
#[derive(Clone)]
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        // Ordering: Relaxed, here and below: each count belongs to one test's thread.
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // Ordering: Relaxed: the count belongs to one test's thread.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A value of any size and alignment. A bomb panics in its destructor.
#[repr(C)]
struct Shape<const N: usize, A> {
    align: [A; 0],
    bytes: [u8; N],
    is_bomb: bool,
    counted: Counted,
}

impl<const N: usize, A> Drop for Shape<N, A> {
    fn drop(&mut self) {
        assert!(!self.is_bomb, "on purpose: destructor");
    }
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Take,
    TakeOut,
    TakeAnother,
    Drop,
    DropBomb,
    DropBombInPanic,
}

fn ways() -> impl Strategy<Value = Way> {
    prop::sample::select(vec![
        Way::Take,
        Way::TakeOut,
        Way::TakeAnother,
        Way::Drop,
        Way::DropBomb,
        Way::DropBombInPanic,
    ])
}

/// Drops the held value while a panic unwinds.
fn drop_in_panic(held: impl Send) {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let _held = held;
        panic!("on purpose: the first panic");
    }));
    let message = caught.unwrap_err();
    assert_eq!(message.downcast_ref(), Some(&"on purpose: the first panic"));
}

fn go<const N: usize, A: Send + 'static>(way: Way, filler: u8) {
    let count = Arc::new(AtomicUsize::new(0));
    let new = |is_bomb| {
        let value = Shape::<N, A> {
            align: [],
            bytes: [filler; N],
            is_bomb,
            counted: Counted::new(&count),
        };
        Opaque::new(value)
    };
    let check = |value: &Shape<N, A>| {
        assert!(value.bytes.iter().all(|it| *it == filler));
        assert_eq!(
            std::ptr::from_ref(value).addr() % align_of::<Shape<N, A>>(),
            0
        );
    };
    match way {
        Way::Take => {
            let mut opaque = new(false);
            check(opaque.get_mut().unwrap());
            let value: Shape<N, A> = opaque.take().unwrap();
            check(&value);
            // Ordering: Relaxed: the count belongs to this thread.
            assert_eq!(count.load(Ordering::Relaxed), 1);
        }
        Way::TakeOut => {
            let mut opaque = new(false).by_words();
            assert!(opaque.take_out::<[u8; N]>().is_none());
            let value: Shape<N, A> = opaque.take_out().unwrap();
            check(&value);
            assert!(opaque.take_out::<Shape<N, A>>().is_none() && opaque.kind().is::<()>());
            drop(opaque);
            // Ordering: Relaxed: the count belongs to this thread.
            assert_eq!(count.load(Ordering::Relaxed), 1);
        }
        Way::TakeAnother => {
            let mut opaque = new(false);
            assert!(opaque.get_mut::<[u8; N]>().is_none());
            let mut opaque = opaque.take::<[u8; N]>().unwrap_err();
            check(opaque.get_mut().unwrap());
        }
        Way::Drop => drop(new(false)),
        Way::DropBomb => {
            assert!(catch_unwind(AssertUnwindSafe(|| drop(new(true)))).is_err());
        }
        Way::DropBombInPanic => drop_in_panic((new(true), new(true))),
    }
    // Ordering: Relaxed: the count belongs to this thread.
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

#[repr(align(64))]
struct Wide;

proptest! {
    #[test]
    fn values_of_all_shapes_come_out_whole_or_are_dropped_once(way in ways(), filler: u8) {
        go::<0, u8>(way, filler);
        go::<32, u64>(way, filler);
        go::<111, u128>(way, filler);
        go::<239, u64>(way, filler);
        go::<240, u64>(way, filler);
        go::<1_000, u8>(way, filler);
        go::<8, Wide>(way, filler);
    }
}

thread_local! {
    static DROPPED: Cell<u32> = const { Cell::new(0) };
}

/// A value without a size.
struct Nothing;

impl Drop for Nothing {
    fn drop(&mut self) {
        DROPPED.set(DROPPED.get() + 1);
    }
}

/// As large as a word, but aligned to two, without a size.
#[repr(align(16))]
struct WideNothing;

impl Drop for WideNothing {
    fn drop(&mut self) {
        DROPPED.set(DROPPED.get() + 1);
    }
}

#[test]
fn a_value_without_a_size_is_dropped_once() {
    drop(Opaque::new(Nothing));
    assert_eq!(DROPPED.get(), 1);
    let nothing = Opaque::new(Nothing).take::<Nothing>().unwrap();
    assert_eq!(DROPPED.get(), 1);
    drop(nothing);
    drop(Opaque::new(WideNothing));
    let wide = Opaque::new(WideNothing).take::<WideNothing>().unwrap();
    assert_eq!(DROPPED.get(), 3);
    assert_eq!((&raw const wide).addr() % 16, 0);
    drop(wide);
    assert_eq!(DROPPED.get(), 4);
}

#[test]
fn what_is_a_word_or_less_lies_in_the_opaque_itself() {
    fn is_inside<T: Send + 'static>(value: T) -> bool {
        let mut opaque = Opaque::new(value);
        let begin = (&raw const opaque).addr();
        let value = std::ptr::from_mut(opaque.get_mut::<T>().unwrap()).addr();
        (begin..begin + size_of::<Opaque>()).contains(&value)
    }
    assert!(is_inside(7_u64) && is_inside([7_u8; 7]) && is_inside(Box::new(7)));
    assert!(!is_inside([7_u8; 9]) && !is_inside(WideNothing));
    assert_eq!(Opaque::new(7_u64).take::<u64>().unwrap(), 7);
}

#[test]
fn a_value_that_is_not_sync_is_sent_and_taken_elsewhere() {
    let cell = Opaque::new([const { Cell::new(7) }; 5]);
    let taken = std::thread::spawn(move || cell.take::<[Cell<i32>; 5]>().unwrap()[4].get());
    assert_eq!(taken.join().unwrap(), 7);
}

#[test]
fn kinds_of_equal_shape_are_told_apart() {
    struct Metres(#[allow(dead_code, reason = "it makes the size")] u64);
    assert_ne!(Kind::of::<Metres>(), Kind::of::<u64>());
    assert_eq!(Kind::of::<Rc<u64>>(), Kind::of::<Rc<u64>>());
    let opaque = Opaque::new(Metres(7)).take::<u64>().unwrap_err();
    assert!(format!("{opaque:?}").ends_with("Metres)"));
    assert!(Kind::of::<u64>().is::<u64>() && !Kind::of::<u64>().is::<i64>());
}

#[test]
fn a_kind_comes_back_from_its_pointer() {
    let kind = Kind::of::<String>();
    // SAFETY: the pointers are of a kind, and null.
    let (back, none) = unsafe {
        let back = Kind::from_raw(kind.into_raw());
        (back, Kind::from_raw(std::ptr::null_mut()))
    };
    assert_eq!((back, none), (Some(kind), None));
}
