//! Ctrl-C: the results so far are written. A second Ctrl-C ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code after the user's wish to stop.
pub(super) const INTERRUPTED: u8 = 130;

/// Whether the user wants to stop.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Creates a wish to stop, which Ctrl-C sets from now on.
    ///
    /// # Errors
    /// When the system refuses it, or the process has such a handler already.
    pub(super) fn on_ctrl_c() -> Result<Self, String> {
        let stop = Self::default();
        let handler = stop.clone();
        ctrlc::set_handler(move || {
            if handler.is_wanted() {
                std::process::exit(INTERRUPTED.into());
            }
            handler.now();
            eprintln!("\nStopping; what is there is written. Once more: end at once.");
        })
        .map_err(|error| format!("can't listen to Ctrl-C: {error}"))?;
        Ok(stop)
    }

    /// Notes that the user wants to stop.
    pub(super) fn now(&self) {
        // Ordering: Relaxed, pairs with `is_wanted`: nothing is read because of it.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the user wants to stop.
    pub(super) fn is_wanted(&self) -> bool {
        // Ordering: Relaxed, pairs with `now`: nothing is read because of it.
        self.0.load(Ordering::Relaxed)
    }
}
