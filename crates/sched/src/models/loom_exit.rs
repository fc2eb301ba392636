//! The exit reason on its way: the worker against the handle.

use crate::exit_slot::{Abandoned, ExitSlot};
use ganger_proc_api::ExitReason;
use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::Arc;
use ganger_sync::{Parker, model, thread};
use std::task::{Context, Wake, Waker};

struct Token(Parker);

impl Wake for Token {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}

/// What a worker does, as `finish` does it; whether the handle has the reason, and the reference.
fn end(slot: &ExitSlot) -> bool {
    match slot.fill(ExitReason::Terminated) {
        Ok(waker) => {
            if let Some(waker) = waker {
                waker.wake();
            }
            true
        }
        Err(_) => false,
    }
}

// pins: P12
#[test]
fn who_waits_gets_the_reason() {
    model::check(5, || {
        let slot = Arc::new(ExitSlot::new());
        let worker = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || end(&slot))
        };
        let token = std::sync::Arc::new(Token(Parker::new()));
        let waker = Waker::from(std::sync::Arc::clone(&token));
        // A wake-up that gets lost leaves it waiting for ever, which loom reports.
        while slot.poll(&Context::from_waker(&waker)).is_pending() {
            token.0.park();
        }
        assert!(worker.join().unwrap());
        assert!(slot.is_filled() && slot.take().is_none());
    });
}

// pins: P12
#[test]
fn a_reason_and_the_reference_go_to_the_handle_or_come_back() {
    model::check(5, || {
        let slot = Arc::new(ExitSlot::new());
        let worker = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || end(&slot))
        };
        let waker = Waker::from(std::sync::Arc::new(Token(Parker::new())));
        let taken = slot.poll(&Context::from_waker(&waker)).is_ready();
        let has_reference = matches!(slot.abandon(), Abandoned::Ended(_));
        let was_filled = worker.join().unwrap();
        assert!(!taken || was_filled, "a reason came from nowhere");
        assert_eq!(was_filled, has_reference, "the process has no owner, or two");
        assert!(!slot.is_filled());
    });
}

/// A slot, and something that one side writes before it uses the slot.
struct Told(ExitSlot, UnsafeCell<u32>);

// SAFETY: the cell is read by who has learnt of its writer through the slot alone, which is what the
// models check.
unsafe impl Sync for Told {}
// SAFETY: as above.
unsafe impl Send for Told {}

impl Told {
    fn new() -> Arc<Self> {
        Arc::new(Self(ExitSlot::new(), UnsafeCell::new(0)))
    }

    fn write(&self) {
        // SAFETY: the other side looks when it has learnt of this.
        self.1.with_mut(|before| unsafe { *before = 7 });
    }

    fn assert_written(&self) {
        // SAFETY: written before the slot was used, and not after it.
        self.1.with(|before| assert_eq!(unsafe { *before }, 7));
    }
}

/// Whoever learns of the end sees what the process has done.
// pins: P12
#[test]
fn who_finds_the_reason_sees_what_was_done_before_it() {
    for is_there in [|slot: &ExitSlot| slot.take().is_some(), ExitSlot::is_filled] {
        model::check(5, move || {
            let told = Told::new();
            let owner = {
                let told = Arc::clone(&told);
                // Not in this thread, whose look would come first: loom does not find that the
                // exchange in `fill` depends on it, because a load of the same thread is in between.
                thread::spawn(move || {
                    if is_there(&told.0) {
                        told.assert_written();
                    }
                })
            };
            told.write();
            assert!(end(&told.0));
            owner.join().unwrap();
        });
    }
}

/// The worker that drops a reason sees what was done by whoever did not want it.
// pins: P12
#[test]
fn who_gets_the_reason_back_sees_what_the_handles_owner_did() {
    model::check(5, || {
        let told = Told::new();
        let owner = {
            let told = Arc::clone(&told);
            thread::spawn(move || {
                told.write();
                drop(told.0.abandon());
            })
        };
        if !end(&told.0) {
            told.assert_written();
        }
        owner.join().unwrap();
    });
}
