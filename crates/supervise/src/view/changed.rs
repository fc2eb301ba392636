//! The wake-ups after a change of a view.

use super::{Inner, View};
use crate::log::contain;
use ganger_sync::sync::lock;
use ganger_sync::wake_all;
use std::collections::BTreeMap;
use std::mem;
use std::sync::Weak;
use std::task::Waker;

/// The wake-ups after a change, for the time after the lock.
#[must_use]
pub(super) struct Changed {
    watchers: BTreeMap<u64, Waker>,
    above: Weak<View>,
}

impl Inner {
    pub(super) fn changed(&mut self) -> Changed {
        self.version += 1;
        Changed {
            watchers: mem::take(&mut self.watchers),
            above: Weak::clone(&self.above),
        }
    }
}

impl Changed {
    /// Wakes the waiters, and counts the change above. Wakers are foreign code: their panics must
    /// not reach the supervisor.
    pub(super) fn tell(mut self) {
        loop {
            if !self.watchers.is_empty() {
                let wakers = mem::take(&mut self.watchers).into_values().collect();
                let _ = contain(|| wake_all(wakers));
            }
            let Some(above) = self.above.upgrade() else {
                return;
            };
            self = lock(&above.inner).changed();
        }
    }
}
