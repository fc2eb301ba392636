//! Panics of which nobody needs to hear yet, and where they were.

use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Once;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    /// Where the last panic was.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Has the places of panics noted from now on.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // It may be gone at the end of a thread.
            let _gone = PLACE.try_with(|place| {
                *place.borrow_mut() = info.location().map(ToString::to_string);
            });
            if !IS_QUIET.try_with(Cell::get).unwrap_or(false) {
                others(info);
            }
        }));
    });
}

/// Where the last panic of this thread was, once.
pub(crate) fn place() -> Option<String> {
    PLACE.take()
}

/// Calls `f`, whose panics the panic hook does not show: they come back in what `f` returns.
pub(crate) fn quietly<R>(f: impl FnOnce() -> R) -> R {
    struct Loud(bool);
    impl Drop for Loud {
        fn drop(&mut self) {
            IS_QUIET.set(self.0);
        }
    }
    let _loud = Loud(IS_QUIET.replace(true));
    f()
}
