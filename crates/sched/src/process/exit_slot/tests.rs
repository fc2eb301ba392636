//! The exit slot: the side with the reason, and the owner of the rest.

use super::*;
use std::cell::RefCell;
use std::sync::Mutex;
use std::task::Wake;

#[derive(Default)]
struct Counting(Mutex<usize>);

impl Counting {
    fn get(&self) -> usize {
        *self.0.lock().unwrap()
    }
}

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        *self.0.lock().unwrap() += 1;
    }
}

fn done(number: u64) -> ExitReason {
    ExitReason::Done(number.into())
}

fn number(reason: ExitReason) -> Option<u64> {
    match reason {
        ExitReason::Done(payload) => payload.as_u64(),
        _ => None,
    }
}

/// A place outside of any process.
#[derive(Default)]
struct Shelf(RefCell<Option<ExitReason>>);

impl ExitStorage for Shelf {
    unsafe fn put(&self, reason: ExitReason) {
        assert!(self.0.replace(Some(reason)).is_none());
    }

    unsafe fn take_back(&self) -> ExitReason {
        self.0.take().unwrap()
    }

    unsafe fn take(&self) -> ExitReason {
        self.0.take().unwrap()
    }
}

type Filled = Result<Option<Waker>, ExitReason>;

/// A slot with its place, on a single thread.
struct Lone(ExitSlot, Shelf);

impl Lone {
    fn new() -> Self {
        Self(ExitSlot::new(), Shelf::default())
    }

    fn fill(&self, reason: ExitReason) -> Filled {
        self.fill_with(reason, false)
    }

    fn fill_with(&self, reason: ExitReason, is_unwatched: bool) -> Filled {
        // SAFETY: the test has a single thread, and the slot has one place.
        unsafe { self.0.fill(&self.1, reason, is_unwatched) }
    }

    fn take(&self) -> Option<ExitReason> {
        // SAFETY: the test has a single thread, and the slot has one place.
        unsafe { self.0.take(&self.1) }
    }

    fn poll(&self, waker: &Waker) -> Poll<ExitReason> {
        // SAFETY: the test has a single thread, and the slot has one place.
        unsafe { self.0.poll(&self.1, &Context::from_waker(waker)) }
    }

    fn abandon(&self) -> Abandoned {
        // SAFETY: the test has a single thread, and the slot has one place.
        unsafe { self.0.abandon(&self.1) }
    }
}

// pins: P12
#[test]
fn a_reason_is_taken_once() {
    let mut slot = Lone::new();
    assert!(!slot.0.is_filled() && slot.take().is_none());
    assert!(slot.fill(done(7)).unwrap().is_none());
    assert!(slot.0.is_filled());
    assert_eq!(slot.0.left(), Left::Reason);
    assert_eq!(slot.take().and_then(number), Some(7));
    assert!(slot.0.is_filled() && slot.take().is_none());
    assert_eq!(slot.0.left(), Left::Nothing);
}

// pins: P12
#[test]
fn the_last_waker_is_the_one_that_is_woken() {
    let slot = Lone::new();
    let counting = [0, 1].map(|_| Arc::new(Counting::default()));
    for waiter in &counting {
        assert!(slot.poll(&Waker::from(Arc::clone(waiter))).is_pending());
    }
    assert_eq!(
        Arc::strong_count(&counting[0]),
        1,
        "its waker has been dropped"
    );
    slot.fill(done(7)).unwrap().unwrap().wake();
    assert_eq!(counting.each_ref().map(|waiter| waiter.get()), [0, 1]);
    match slot.poll(Waker::noop()) {
        Poll::Ready(reason) => assert_eq!(number(reason), Some(7)),
        Poll::Pending => panic!("the reason has been left"),
    }
}

// pins: P12
#[test]
fn a_reason_without_a_handle_comes_back() {
    let mut slot = Lone::new();
    let counting = Arc::new(Counting::default());
    let waker = Waker::from(Arc::clone(&counting));
    assert!(slot.poll(&waker).is_pending());
    assert!(matches!(slot.abandon(), Abandoned::Alive(Some(_))));
    drop(waker);
    assert_eq!(
        Arc::strong_count(&counting),
        1,
        "its waker has been dropped"
    );
    assert_eq!(number(slot.fill(done(7)).unwrap_err()), Some(7));
    assert_eq!(slot.0.left(), Left::Before);
}

// pins: P12
#[test]
fn a_handle_that_is_dropped_after_the_end_has_the_reference() {
    let mut slot = Lone::new();
    assert!(slot.fill(done(7)).unwrap().is_none());
    match slot.abandon() {
        Abandoned::Ended(Some(reason)) => assert_eq!(number(reason), Some(7)),
        _ => panic!("the reason has been left"),
    }
    assert_eq!(slot.0.left(), Left::Nothing);
    let slot = Lone::new();
    assert!(slot.fill(done(7)).unwrap().is_none());
    assert!(slot.take().is_some());
    assert!(matches!(slot.abandon(), Abandoned::Ended(None)));
}

// pins: F2
#[test]
fn a_reason_that_nothing_else_is_told_of_is_known_as_such_until_it_is_taken() {
    let mut slot = Lone::new();
    assert!(slot.fill_with(done(7), true).unwrap().is_none());
    assert!(slot.0.is_filled() && !slot.0.is_abandoned());
    assert_eq!(slot.0.left(), Left::Reason);
    match slot.abandon() {
        Abandoned::Unwatched(reason) => assert_eq!(number(reason), Some(7)),
        _ => panic!("nothing has looked at it"),
    }
    let slot = Lone::new();
    assert!(slot.fill_with(done(7), true).unwrap().is_none());
    assert_eq!(slot.take().and_then(number), Some(7));
    assert!(matches!(slot.abandon(), Abandoned::Ended(None)));
    let slot = Lone::new();
    assert!(matches!(slot.abandon(), Abandoned::Alive(None)));
    assert!(slot.0.is_abandoned() && slot.fill_with(done(7), true).is_err());
}

#[test]
fn a_waker_that_is_left_is_dropped_with_it() {
    let counting = Arc::new(Counting::default());
    let slot = Lone::new();
    assert!(slot.poll(&Waker::from(Arc::clone(&counting))).is_pending());
    assert_eq!(Arc::strong_count(&counting), 2);
    drop(slot);
    assert_eq!(Arc::strong_count(&counting), 1);
}
