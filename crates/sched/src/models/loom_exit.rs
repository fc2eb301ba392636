//! The exit reason on its way: the worker against the handle.

use crate::process::exit_slot::{Abandoned, ExitSlot, ExitStorage};
use ganger_proc_api::ExitReason;
use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::Arc;
use ganger_sync::{Parker, model, thread};
use std::task::{Context, Poll, Waker};

/// A slot, its place, and a value written before a side uses the slot.
struct Told {
    slot: ExitSlot,
    place: Shelf,
    before: UnsafeCell<u32>,
}

struct Shelf(UnsafeCell<Option<ExitReason>>);

// SAFETY: a thread reaches the cells only after it has learnt through the slot that the other side
// is done with them; the models check this.
unsafe impl Sync for Told {}
// SAFETY: a thread reaches the cells only after it has learnt through the slot that the other side
// is done with them; the models check this.
unsafe impl Send for Told {}

impl ExitStorage for Shelf {
    unsafe fn put(&self, reason: ExitReason) {
        // SAFETY: the contract of this function.
        self.0.with_mut(|place| unsafe { *place = Some(reason) });
    }

    unsafe fn take_back(&self) -> ExitReason {
        // SAFETY: the contract of this function.
        unsafe { self.take() }
    }

    unsafe fn take(&self) -> ExitReason {
        // SAFETY: the contract of this function.
        let reason = self.0.with_mut(|place| unsafe { (*place).take() });
        reason.expect("there is a reason")
    }
}

impl Told {
    fn new() -> Arc<Self> {
        Arc::new(Self::unshared())
    }

    fn unshared() -> Self {
        Self {
            slot: ExitSlot::new(),
            place: Shelf(UnsafeCell::new(None)),
            before: UnsafeCell::new(0),
        }
    }

    fn write(&self) {
        // SAFETY: the other side looks when it has learnt of this.
        self.before.with_mut(|before| unsafe { *before = 7 });
    }

    fn assert_written(&self) {
        // SAFETY: written before the slot was used, and not after it.
        self.before.with(|before| assert_eq!(unsafe { *before }, 7));
    }

    /// Fills the slot as `finish` does. Returns whether the handle has the reason then, and the
    /// reference.
    fn end(&self) -> bool {
        // SAFETY: each model has one worker.
        match unsafe { self.slot.fill(&self.place, ExitReason::Terminated, true) } {
            Ok(waker) => {
                if let Some(waker) = waker {
                    waker.wake();
                }
                true
            }
            Err(_) => false,
        }
    }

    fn poll(&self, waker: &Waker) -> Poll<ExitReason> {
        // SAFETY: each model has one handle.
        unsafe { self.slot.poll(&self.place, &Context::from_waker(waker)) }
    }

    fn take(&self) -> Option<ExitReason> {
        // SAFETY: each model has one handle.
        unsafe { self.slot.take(&self.place) }
    }

    /// Drops the handle. Returns whether the handle has the reference then.
    fn abandon(&self) -> bool {
        // SAFETY: each model has one handle.
        let abandoned = unsafe { self.slot.abandon(&self.place) };
        matches!(abandoned, Abandoned::Ended(_) | Abandoned::Unwatched(_))
    }
}

// pins: P12
#[test]
fn who_waits_gets_the_reason() {
    model::check(5, || {
        let told = Told::new();
        let worker = {
            let told = Arc::clone(&told);
            thread::spawn(move || told.end())
        };
        let token = std::sync::Arc::new(Parker::new());
        let waker = Waker::from(std::sync::Arc::clone(&token));
        // A lost wake-up leaves this thread waiting for ever, and loom reports it.
        while told.poll(&waker).is_pending() {
            token.park();
        }
        assert!(worker.join().unwrap());
        assert!(told.slot.is_filled() && told.take().is_none());
    });
}

// pins: P12
#[test]
fn a_reason_and_the_reference_go_to_the_handle_or_come_back() {
    model::check(5, || {
        let told = Told::new();
        let worker = {
            let told = Arc::clone(&told);
            thread::spawn(move || told.end())
        };
        let waker = Waker::from(std::sync::Arc::new(Parker::new()));
        let taken = told.poll(&waker).is_ready();
        let has_reference = told.abandon();
        let was_filled = worker.join().unwrap();
        assert!(!taken || was_filled, "a reason came from nowhere");
        assert_eq!(
            was_filled, has_reference,
            "the process has no owner, or two"
        );
    });
}

/// Checks that the thread that learns of the end sees the process's writes.
// pins: P12
#[test]
fn who_finds_the_reason_sees_what_was_done_before_it() {
    let looks: [fn(&Told) -> bool; 3] = [
        |told| told.take().is_some(),
        |told| told.slot.is_filled(),
        Told::abandon,
    ];
    for is_there in looks {
        model::check(5, move || {
            let told = Told::new();
            let owner = {
                let told = Arc::clone(&told);
                // Not in this thread, whose look would come first: loom does not find that the
                // exchange in `fill` depends on it, because a load of the same thread is in
                // between.
                thread::spawn(move || {
                    let is_there = is_there(&told);
                    if is_there {
                        told.assert_written();
                    }
                })
            };
            told.write();
            let _was_filled = told.end();
            owner.join().unwrap();
        });
    }
}

/// Checks that the worker that gets the reason back sees the writes of the handle's owner before
/// the drop of the handle.
// pins: P12
#[test]
fn who_gets_the_reason_back_sees_what_the_handles_owner_did() {
    model::check(5, || {
        let told = Told::new();
        let owner = {
            let told = Arc::clone(&told);
            thread::spawn(move || {
                told.write();
                told.abandon();
            })
        };
        if !told.end() {
            told.assert_written();
        }
        owner.join().unwrap();
    });
}

/// A `Told` in memory which the slot leaves to a single side.
#[derive(Clone, Copy)]
struct Loose(*const Told);

// SAFETY: a side reaches the memory as long as it has not given it up, as the model checks.
unsafe impl Send for Loose {}

impl Loose {
    fn told<'a>(self) -> &'a Told {
        // SAFETY: the caller has not given it up.
        unsafe { &*self.0 }
    }

    /// Frees the memory. Loom finds a side that reads at the same time, because this is a write.
    fn free(self) {
        self.told().write();
        // SAFETY: a box, which the slot has left to the caller.
        drop(unsafe { Box::from_raw(self.0.cast_mut()) });
    }

    /// Reads the value, as both sides do before they give the memory up.
    fn read(self) {
        // SAFETY: written before both sides began, and then by the freeing side.
        self.told()
            .before
            .with(|before| assert_eq!(unsafe { *before }, 0));
    }
}

/// Checks that each side looks at the slot for the last time, and only one of them has the memory
/// then.
// pins: P12
#[test]
fn the_memory_goes_with_who_has_the_reference() {
    model::check(5, || {
        let loose = Loose(Box::into_raw(Box::new(Told::unshared())));
        let worker = thread::spawn(move || {
            loose.read();
            let is_owner = !loose.told().end();
            if is_owner {
                loose.free();
            }
            is_owner
        });
        let waker = Waker::from(std::sync::Arc::new(Parker::new()));
        let _is_there = loose.told().poll(&waker).is_ready();
        loose.read();
        let is_owner = loose.told().abandon();
        if is_owner {
            loose.free();
        }
        assert_ne!(is_owner, worker.join().unwrap(), "two owners, or none");
    });
}
