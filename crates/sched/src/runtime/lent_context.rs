//! A process's context and its waker, lent to the process's own code.

use crate::runtime::cell::{ProcessCell, Task};
use ganger_proc_api::{Context, Pid};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};

/// The context of a process, for a call of its code. The reference count of the process leaves it
/// out, as it would cost two read-modify-writes a step. Code that keeps the context clones it.
pub(crate) struct LentContext<'a> {
    context: ManuallyDrop<Context>,
    of: PhantomData<&'a Task>,
}

impl<'a> LentContext<'a> {
    /// Makes the context of `task`.
    #[inline(always)]
    pub(crate) fn new(task: &'a Task) -> Self {
        // SAFETY: the pointer comes from an `Arc`, which is borrowed for as long as this context
        // lives. The copy is never dropped, so it need not be counted.
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

/// The wakers of processes have this table, and no other waker has it.
static PROCESS_WAKER: RawWakerVTable = RawWakerVTable::new(
    |cell| {
        // SAFETY: the pointers come from `into_raw`, and from clones.
        unsafe { Arc::increment_strong_count(cell.cast::<ProcessCell>()) };
        RawWaker::new(cell, &PROCESS_WAKER)
    },
    // SAFETY: the pointers come from `into_raw`, and from clones; a wake-up takes the waker's
    // reference over.
    |cell| ProcessCell::wake(&unsafe { Arc::from_raw(cell.cast::<ProcessCell>()) }),
    // SAFETY: the pointers come from `into_raw`, and from clones; the waker keeps its reference.
    |cell| ProcessCell::wake(&ManuallyDrop::new(unsafe { Arc::from_raw(cell.cast()) })),
    // SAFETY: the pointers come from `into_raw`, and from clones; the drop takes the waker's
    // reference.
    |cell| drop(unsafe { Arc::from_raw(cell.cast::<ProcessCell>()) }),
);

impl ProcessCell {
    /// Makes the process its own waker, which costs a reference to its cell.
    pub(crate) fn into_waker(self: Arc<Self>) -> Waker {
        let waker = RawWaker::new(Arc::into_raw(self).cast(), &PROCESS_WAKER);
        // SAFETY: the functions of the table count references to the cell, on any thread.
        unsafe { Waker::from_raw(waker) }
    }
}

/// Returns whether this waker is a process's own. A clone runs no users' code then, and may be made
/// under a lock.
#[must_use]
pub fn is_process_waker(waker: &Waker) -> bool {
    ptr::eq(waker.vtable(), &raw const PROCESS_WAKER)
}

/// Returns the process that this waker wakes, with the number of its scheduler; none for the waker
/// of anything else.
#[must_use]
pub fn process_of(waker: &Waker) -> Option<(Pid, u64)> {
    if !is_process_waker(waker) {
        return None;
    }
    // SAFETY: a waker with this table has a pointer of `into_waker`, and its reference to the cell
    // lasts as long as the borrow of the waker.
    let cell = unsafe { &*waker.data().cast::<ProcessCell>() };
    Some((cell.pid(), cell.shared.number))
}

/// The waker of a process, for its step: a clone counts a reference to the process, this does not.
pub struct LentWaker<'a> {
    waker: ManuallyDrop<Waker>,
    of: PhantomData<&'a ProcessCell>,
}

impl LentWaker<'_> {
    /// Makes the waker of the process.
    ///
    /// # Safety
    /// The pointer comes from an `Arc`, which lives for as long as this waker.
    pub(crate) unsafe fn new(cell: *const ProcessCell) -> Self {
        // SAFETY: the contract of this function. The copy, and the waker that takes it over, are
        // never dropped, so it need not be counted.
        let copy = unsafe { Arc::from_raw(cell) };
        Self {
            waker: ManuallyDrop::new(copy.into_waker()),
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

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use ganger_proc_api::process_fn;

    /// Checks that channels know the wakers of processes: under their locks they clone no others.
    #[test]
    fn wakers_of_processes_are_known_as_such() {
        let scheduler = Scheduler::start_default().expect("it starts");
        let process = process_fn(|ctx, _, out| {
            let waker = ctx.waker();
            let is_known = is_process_waker(&waker) && is_process_waker(&waker.clone());
            out.done(is_known && waker.will_wake(&ctx.waker()));
            Ok(())
        });
        let handle = scheduler.spawn(process).expect("it is not stopping");
        assert!(handle.wait().take::<bool>().expect("its outcome"));
        assert!(!is_process_waker(Waker::noop()));
    }

    #[test]
    fn a_waker_knows_its_process_and_scheduler() {
        let scheduler = Scheduler::start_default().expect("it starts");
        let process = process_fn(|ctx, _, out| {
            out.done(process_of(&ctx.waker()));
            Ok(())
        });
        let handle = scheduler.spawn(process).expect("it is not stopping");
        let of_process = Some((handle.pid(), scheduler.number()));
        let found = handle.wait().take::<Option<(Pid, u64)>>();
        assert_eq!(found.expect("its outcome"), of_process);
        assert_eq!(process_of(Waker::noop()), None);
    }
}
