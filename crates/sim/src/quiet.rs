//! Panics without a report for the moment, and their places.

use ganger_sync::scoped;
use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Once;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    /// The place of the last panic.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Notes the places of panics from here on.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // The thread-local may be gone at the end of a thread.
            let _gone = PLACE.try_with(|place| {
                *place.borrow_mut() = info.location().map(ToString::to_string);
            });
            if !IS_QUIET.try_with(Cell::get).unwrap_or(false) {
                others(info);
            }
        }));
    });
}

/// Takes the place of this thread's last panic.
pub(crate) fn place() -> Option<String> {
    PLACE.take()
}

/// Calls `f` without the panic hook's output for the panics in it.
pub(crate) fn quietly<R>(f: impl FnOnce() -> R) -> R {
    scoped(&IS_QUIET, true, f)
}
