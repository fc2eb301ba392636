//! The exit reason on its way: the worker against the handle.

use crate::exit_slot::ExitSlot;
use ganger_proc_api::ExitReason;
use ganger_sync::sync::Arc;
use ganger_sync::{Parker, model, thread};
use std::task::{Context, Wake, Waker};

struct Token(Parker);

impl Wake for Token {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}

/// What a worker does, as `finish` does it; whether somebody may still take the reason.
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
fn a_reason_goes_to_the_handle_or_comes_back() {
    model::check(5, || {
        let slot = Arc::new(ExitSlot::new());
        let worker = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || end(&slot))
        };
        let waker = Waker::from(std::sync::Arc::new(Token(Parker::new())));
        let taken = slot.poll(&Context::from_waker(&waker)).is_ready();
        slot.abandon();
        let was_filled = worker.join().unwrap();
        assert!(!taken || was_filled, "a reason came from nowhere");
        assert!(!slot.is_filled());
    });
}
