//! Wakers and panics of other code.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Calls `f` with each item. A panic of `f` goes on after `f` has had the remaining items.
pub fn for_each_past_panics<I: Iterator>(items: I, f: impl FnMut(I::Item)) {
    struct Rest<I: Iterator, F: FnMut(I::Item)>(I, F);
    impl<I: Iterator, F: FnMut(I::Item)> Rest<I, F> {
        fn run(&mut self) {
            self.0.by_ref().for_each(&mut self.1);
        }
    }
    impl<I: Iterator, F: FnMut(I::Item)> Drop for Rest<I, F> {
        fn drop(&mut self) {
            self.run();
        }
    }
    Rest(items, f).run();
}

/// Wakes all wakers, also if one panics. The caller must hold no lock: a waker is foreign code.
///
/// # Panics
/// If a waker panics, after all other wakers.
pub fn wake_all(wakers: Vec<Waker>) {
    for_each_past_panics(wakers.into_iter(), Waker::wake);
}

/// Returns the text of a panic, if its payload is a text.
#[must_use]
pub fn panic_text(payload: &(dyn Any + Send)) -> Option<&str> {
    let text = payload.downcast_ref::<&'static str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

/// Drops the payload of a panic: a user's value, whose destructor may panic as well. The second
/// panic's payload leaks.
pub fn discard_panic(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(second);
    }
}

/// Calls `f`. `None`: the call has panicked, and the panic hook has reported the panic.
///
/// Data borrowed by `f` may be half-changed after a panic.
pub fn contain<R>(f: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(f))
        .map_err(discard_panic)
        .ok()
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::panic::panic_any;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    struct Counts(AtomicUsize);

    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            // Ordering: Relaxed: a single thread.
            assert_ne!(self.0.fetch_add(1, Ordering::Relaxed), 1, "on purpose");
        }
    }

    #[test]
    fn a_waker_that_panics_keeps_no_other_asleep() {
        let counts = Arc::new(Counts(AtomicUsize::new(0)));
        let wakers = (0..4).map(|_| Waker::from(Arc::clone(&counts)));
        let wakers = wakers.collect();
        let panic = catch_unwind(|| wake_all(wakers)).unwrap_err();
        assert!(panic_text(&*panic).unwrap().contains("on purpose"));
        // Ordering: Relaxed: a single thread.
        assert_eq!(counts.0.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn a_panic_has_its_text() {
        let text = |panic: fn()| {
            let payload = catch_unwind(panic).unwrap_err();
            panic_text(&*payload).map(str::to_owned)
        };
        assert_eq!(text(|| panic!("plain")).unwrap(), "plain");
        assert_eq!(text(|| panic!("{}", 7)).unwrap(), "7");
        assert_eq!(text(|| panic_any(7)), None);
    }

    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                panic_any(Bomb(self.0 - 1));
            }
        }
    }

    #[test]
    fn a_payload_that_panics_goes_no_further() {
        assert_eq!(contain(|| 7), Some(7));
        for depth in 0..4 {
            assert_eq!(contain(|| panic_any(Bomb(depth))), None::<()>);
        }
    }
}
