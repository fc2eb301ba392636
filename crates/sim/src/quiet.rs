//! Panics of which nobody needs to hear yet.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Calls `f`, whose panics the panic hook does not get to see: they come back in what `f` returns.
pub(crate) fn quietly<R>(f: impl FnOnce() -> R) -> R {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                others(info);
            }
        }));
    });
    struct Loud(bool);
    impl Drop for Loud {
        fn drop(&mut self) {
            IS_QUIET.set(self.0);
        }
    }
    let _loud = Loud(IS_QUIET.replace(true));
    f()
}
