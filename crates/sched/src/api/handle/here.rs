//! The scheduler of the calling thread.

use super::Handle;
use crate::runtime::local;
use std::sync::Arc;

/// Returns the scheduler whose worker this thread is.
#[must_use]
pub fn scheduler() -> Option<Handle> {
    local::with_any(|queue| {
        let shared = Arc::clone(&queue?.shared);
        Some(Handle { shared })
    })
}
