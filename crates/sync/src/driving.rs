//! Whether this thread is in the driver of a scheduler, where it must not wait for a process.
//!
//! **Problem.** A process started or woken by a call in the driver runs only after the thread has
//! left the driver. A wait for it inside of the call never ends.
//!
//! **Rejected.** To run the process on another thread: the scheduler may have no other thread.

use crate::scoped;
use std::cell::Cell;

thread_local! {
    static IS_DRIVING: Cell<bool> = const { Cell::new(false) };
}

/// Calls `f`, and marks this thread as in the driver of a scheduler until `f` has returned.
///
/// ```
/// use ganger_sync::{driving, is_driving};
///
/// assert!(driving(is_driving) && !is_driving());
/// ```
pub fn driving<R>(f: impl FnOnce() -> R) -> R {
    scoped(&IS_DRIVING, true, f)
}

/// Returns whether this thread is in the driver of a scheduler.
#[must_use]
pub fn is_driving() -> bool {
    IS_DRIVING.get()
}

/// Panics in the driver of a scheduler. For a thread that is about to wait for a process.
///
/// # Panics
/// If the thread is in the driver of a scheduler.
#[track_caller]
pub fn refuse_to_wait_in_driver() {
    assert!(
        !is_driving(),
        "a thread can't wait inside of a scheduler's driver, as in a task of `tokio::spawn`: what \
         is woken there begins when the call is over; `.await` it, or wait in a process"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn a_thread_is_in_the_driver_until_the_call_is_over_however_that_ends() {
        refuse_to_wait_in_driver();
        let unwound = catch_unwind(|| driving(|| driving(refuse_to_wait_in_driver)));
        let message = *unwound.unwrap_err().downcast::<&str>().unwrap();
        assert!(message.contains("`.await` it") && !is_driving());
        driving(|| {
            driving(|| ());
            assert!(is_driving());
        });
    }
}
