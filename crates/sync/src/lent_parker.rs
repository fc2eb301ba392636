//! The parker of a thread, lent to a wait.
//!
//! **Problem.** A thread that waits for a future needs a waker, which is an allocation. A nested
//! wait, inside of a poll, must not take the token of the outer wait.
//!
//! **Protocol.** A wait takes the thread's parker, and gives it back at its end. A nested wait
//! finds none, and makes a parker of its own.

use crate::parker::Parker;
#[cfg(not(ganger_loom))]
use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;

#[cfg(not(ganger_loom))]
thread_local! {
    static OWN: Cell<Option<Arc<Parker>>> = const { Cell::new(None) };
}

/// The parker of this thread, for a single wait. A token left over from an earlier wait may end a
/// sleep early: the wait checks its condition after each sleep.
///
/// ```
/// use ganger_sync::LentParker;
/// use std::sync::Arc;
/// use std::task::Waker;
///
/// let parker = LentParker::take();
/// Waker::from(Arc::clone(&parker)).wake();
/// parker.park();
/// ```
#[derive(Debug)]
pub struct LentParker(Arc<Parker>);

impl LentParker {
    /// Takes the parker of this thread, or makes a new one if an outer wait has it.
    #[cfg(not(ganger_loom))]
    #[must_use]
    pub fn take() -> Self {
        // An ending thread has lost its thread-locals.
        Self(OWN.try_with(Cell::take).ok().flatten().unwrap_or_default())
    }

    /// Makes a new parker: loom's objects live for one run only.
    #[cfg(ganger_loom)]
    #[must_use]
    pub fn take() -> Self {
        Self(Arc::default())
    }
}

impl Deref for LentParker {
    type Target = Arc<Parker>;

    fn deref(&self) -> &Arc<Parker> {
        &self.0
    }
}

#[cfg(not(ganger_loom))]
impl Drop for LentParker {
    fn drop(&mut self) {
        let _ended = OWN.try_with(|own| own.set(Some(Arc::clone(&self.0))));
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_nested_wait_has_a_parker_of_its_own() {
        let outer = LentParker::take();
        let inner = LentParker::take();
        assert!(!Arc::ptr_eq(&outer, &inner));
        drop(inner);
        let first = Arc::clone(&outer);
        drop(outer);
        assert!(Arc::ptr_eq(&first, &LentParker::take()));
    }
}
