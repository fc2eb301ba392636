//! The exchange: each thing is taken once, and its taker sees all writes to it.

use crate::exchange::Exchange;
use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::Arc;
use ganger_sync::thread::JoinHandle;
use ganger_sync::{model, thread};

/// A thing to put and take. Only its owner changes it.
struct Thing(UnsafeCell<u32>);

impl Thing {
    fn new(value: u32) -> *mut Self {
        Box::into_raw(Box::new(Self(UnsafeCell::new(value))))
    }
}

/// An exchange of `N` slots.
struct Shop<const N: usize>(Arc<Exchange<Thing, N>>);

impl<const N: usize> Clone for Shop<N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<const N: usize> Shop<N> {
    fn new() -> Self {
        Self(Arc::new(Exchange::new()))
    }

    /// Puts a thing with a value; returns whether a slot had room.
    fn put(&self, value: u32) -> bool {
        let thing = Thing::new(0);
        // SAFETY: the thing is new, and this thread's alone.
        unsafe { (*thing).0.with_mut(|inside| *inside = value) };
        let is_in = self.0.put(thing, N);
        if !is_in {
            // SAFETY: the thing was not put, so it is still this thread's.
            drop(unsafe { Box::from_raw(thing) });
        }
        is_in
    }

    /// Takes a thing out, and returns its value.
    fn take(&self) -> Option<u32> {
        let thing = self.0.take()?;
        // SAFETY: the thing was taken, so it is this thread's alone; otherwise the model fails.
        unsafe {
            (*thing).0.with_mut(|inside| *inside += 100);
            let thing = Box::from_raw(thing);
            Some(thing.0.into_inner() - 100)
        }
    }

    fn spawn<R: Send + 'static>(
        &self,
        body: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> JoinHandle<R> {
        let shop = self.clone();
        thread::spawn(move || body(&shop))
    }

    /// Takes all remaining things, adds the values in `taken`, and returns them in ascending order.
    fn all(&self, taken: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let rest = std::iter::from_fn(|| self.take());
        let mut all: Vec<u32> = taken.into_iter().chain(rest).collect();
        all.sort_unstable();
        all
    }
}

#[test]
fn puts_against_takes() {
    model::check(4, || {
        let shop = Shop::<2>::new();
        let other = shop.spawn(|shop| [1, 2].map(|value| (shop.put(value), value)));
        let taken = [shop.take(), shop.take()];
        let put = other.join().unwrap();
        assert!(put[0].0, "it was empty");
        let expected = put.into_iter().filter(|(is_in, _)| *is_in);
        let expected: Vec<u32> = expected.map(|(_, value)| value).collect();
        assert_eq!(shop.all(taken.into_iter().flatten()), expected);
    });
}

#[test]
fn two_takes_against_two_puts() {
    model::check(3, || {
        let shop = Shop::<2>::new();
        assert!(shop.put(1));
        let takers = [(); 2].map(|()| shop.spawn(Shop::take));
        assert!(shop.put(2), "one slot is left at least");
        let taken = takers.map(|taker| taker.join().unwrap());
        assert_ne!(taken, [None, None], "both have missed the thing");
        assert_eq!(shop.all(taken.into_iter().flatten()), [1, 2]);
    });
}

#[test]
fn two_puts_into_one_slot() {
    model::check(4, || {
        let shop = Shop::<1>::new();
        let putters = [1, 2].map(|value| shop.spawn(move |shop| shop.put(value)));
        let taken = shop.take();
        let is_in = putters.map(|putter| putter.join().unwrap());
        assert_ne!(is_in, [false, false], "it was empty");
        let expected: Vec<u32> = [1, 2]
            .into_iter()
            .filter(|value| is_in[*value as usize - 1])
            .collect();
        assert_eq!(shop.all(taken), expected);
    });
}

/// Puts a thing through three threads: the third sees the writes of the first two.
#[test]
fn what_is_taken_is_put_again() {
    model::check(4, || {
        let shop = Shop::<1>::new();
        let first = shop.spawn(|shop| assert!(shop.put(1)));
        let second = shop.spawn(|shop| {
            let taken = shop.take();
            taken.map(|value| assert!(shop.put(value + 10)))
        });
        let taken = shop.take();
        first.join().unwrap();
        let passed_on = second.join().unwrap().is_some();
        let rest = shop.all(taken);
        assert_eq!(rest, [if passed_on { 11 } else { 1 }]);
    });
}
