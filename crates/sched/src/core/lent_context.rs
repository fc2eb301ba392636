//! A process's context, lent to the process's own code.

use crate::core::cell::Task;
use ganger_proc_api::Context;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

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
