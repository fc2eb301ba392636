//! The process behind a run token.

use crate::runtime::cell::{ProcessCell, Task};
use crate::runtime::token::Token;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

const _: () = {
    const fn is_sync<T: Sync + Send>() {}
    is_sync::<ProcessCell>();
};

impl Token {
    /// Creates the token of a process.
    ///
    /// # Safety
    /// The caller owns the token, and gives it away with this. The process is in the registry.
    pub(crate) unsafe fn new(task: &Task) -> Self {
        // SAFETY: the pointer of an `Arc` is not null.
        Self(unsafe { NonNull::new_unchecked(Arc::as_ptr(task).cast_mut()) }.cast())
    }

    fn pointer(&self) -> *const ProcessCell {
        self.0.as_ptr().cast()
    }

    /// Prefetches the process, which will run soon: see [`ProcessCell::prefetch`].
    pub(crate) fn prefetch(&self) {
        ProcessCell::prefetch(self.pointer());
    }

    /// Returns the process, to be looked at while it is queued.
    pub(crate) fn cell(&self) -> &ProcessCell {
        // SAFETY: the pointer comes from an `Arc`, which the registry keeps alive.
        unsafe { &*self.pointer() }
    }

    /// Returns the process, for as long as the caller owns the token: until it has parked the
    /// process, has queued it, or has left it to the handle. Or until it has removed the process
    /// from the registry and dropped the reference from there.
    pub(crate) fn into_task(self) -> ManuallyDrop<Task> {
        // SAFETY: the pointer comes from an `Arc`, which the registry keeps alive. The copy is not
        // dropped, so it need not be counted.
        ManuallyDrop::new(unsafe { Arc::from_raw(self.pointer()) })
    }
}
