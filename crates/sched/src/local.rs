//! What this thread is to a scheduler: one of its workers, in the middle of a turn or a submission.

use crate::Task;
use crate::shared::Shared;
use ganger_deque::Worker;
use std::cell::RefCell;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

thread_local! {
    static CURRENT: RefCell<Option<Rc<LocalQueue>>> = const { RefCell::new(None) };
    static HELD: RefCell<Vec<(*const Shared, Held)>> = const { RefCell::new(Vec::new()) };
}

/// A worker's own queue of ready processes.
pub(crate) struct LocalQueue {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: usize,
    pub(crate) deque: Worker<Task>,
}

/// Makes `queue` the one of this thread, until the guard is dropped.
pub(crate) fn enter(queue: Rc<LocalQueue>) -> Entered {
    Entered(CURRENT.with(|current| current.replace(Some(queue))))
}

/// Puts back what was there before.
pub(crate) struct Entered(Option<Rc<LocalQueue>>);

impl Drop for Entered {
    fn drop(&mut self) {
        let mine = CURRENT.with(|current| current.replace(self.0.take()));
        drop(mine);
    }
}

/// Calls `f` with this thread's queue, when this thread is a worker of `shared`.
pub(crate) fn with<R>(shared: &Shared, f: impl FnOnce(&LocalQueue) -> R) -> Option<R> {
    // A destructor of another thread-local may get here after this one has gone.
    let queue = CURRENT
        .try_with(|current| current.borrow().clone())
        .ok()??;
    ptr::eq(Arc::as_ptr(&queue.shared), shared).then(|| f(&queue))
}

/// Why something that counts as live can't end before this thread returns to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// The turn of a process is on this thread's stack.
    Turn,
    /// A submission is.
    Submission,
}

/// Notes, until the guard is dropped, that this thread holds something that counts as live.
///
/// A `stop` that is called in there must not wait for it.
pub(crate) fn hold(shared: &Shared, what: Held) -> Hold {
    // In a destructor of another thread-local this one may be gone: then nothing is noted.
    let noted = HELD.try_with(|held| held.borrow_mut().push((ptr::from_ref(shared), what)));
    Hold(noted.is_ok())
}

/// Guards are dropped in the reverse order of their making.
pub(crate) struct Hold(bool);

impl Drop for Hold {
    fn drop(&mut self) {
        if self.0 {
            let _ = HELD.try_with(|held| held.borrow_mut().pop());
        }
    }
}

/// Whether this thread is no worker of `shared`, and in the middle of nothing.
pub(crate) fn is_outside(shared: &Shared) -> bool {
    let is_known = HELD.try_with(|_| ()).is_ok();
    is_known && held(shared) == (0, 0) && with(shared, |_| ()).is_none()
}

/// How many turns and submissions of `shared` are on this thread's stack.
pub(crate) fn held(shared: &Shared) -> (usize, usize) {
    let count = |what| {
        // The thread-local may be gone when a destructor of another one gets here: nothing is held.
        let count = HELD.try_with(|held| {
            let held = held.borrow();
            held.iter()
                .filter(|entry| **entry == (ptr::from_ref(shared), what))
                .count()
        });
        count.unwrap_or(0)
    };
    (count(Held::Turn), count(Held::Submission))
}
