//! A process's context and its waker, lent to the process's own code.

use crate::runtime::cell::{ProcessCell, Task};
use ganger_proc_api::{Context, ContextBackend};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;
use std::task::Waker;

/// The context of a process, for a call of its code. It counts for nothing in the reference count
/// of the process, which would cost two read-modify-writes a step. Code that keeps the context
/// clones it.
pub(crate) struct LentContext<'a> {
    context: ManuallyDrop<Context>,
    of: PhantomData<&'a Task>,
}

impl<'a> LentContext<'a> {
    /// The context of that process.
    #[inline(always)]
    pub(crate) fn new(task: &'a Task) -> Self {
        // SAFETY: the pointer is that of an `Arc`, which is borrowed for as long as this lives. The
        // copy is never dropped, so that it need not be counted.
        let copy = unsafe { Arc::from_raw(Arc::as_ptr(task)) };
        Self {
            context: ManuallyDrop::new(Context::new(copy as _)),
            of: PhantomData,
        }
    }
}

impl Deref for LentContext<'_> {
    type Target = Context;

    #[inline(always)]
    fn deref(&self) -> &Context {
        &self.context
    }
}

/// The waker of a process, for its step: a clone counts a reference to the process, this does not.
pub struct LentWaker<'a> {
    waker: ManuallyDrop<Waker>,
    of: PhantomData<&'a ProcessCell>,
}

impl LentWaker<'_> {
    /// The waker of that process.
    ///
    /// # Safety
    /// The pointer is that of an `Arc`, which is there for as long as this lives.
    pub(crate) unsafe fn new(cell: *const ProcessCell) -> Self {
        // SAFETY: as this function's. The copy, and the waker that takes it over, are never
        // dropped, so that it need not be counted.
        let copy = unsafe { Arc::from_raw(cell) };
        Self {
            waker: ManuallyDrop::new(copy.waker()),
            of: PhantomData,
        }
    }
}

impl Deref for LentWaker<'_> {
    type Target = Waker;

    fn deref(&self) -> &Waker {
        &self.waker
    }
}

impl fmt::Debug for LentWaker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.waker.fmt(f)
    }
}
