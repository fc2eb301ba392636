//! What this thread is to a scheduler: one of its workers, in the middle of a turn or a submission.

mod held;

pub(crate) use held::{Held, Hold, hold, is_stopping};

use crate::commands::OwnHandlers;
use crate::pid_cache::PidCache;
use crate::pool::Cache;
use crate::shared::Shared;
use crate::token::Token;
use ganger_deque::Worker;
use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

thread_local! {
    /// The queue of the innermost [`enter`] on this thread's stack, or null. Without a destructor, so
    /// that looking costs a load, and works in the destructors of other thread-locals.
    static CURRENT: Cell<*const LocalQueue> = const { Cell::new(ptr::null()) };
}

/// A worker's own queue of ready processes.
pub(crate) struct LocalQueue {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: usize,
    pub(crate) deque: Worker<Token>,
    pub(crate) cache: RefCell<Cache>,
    pub(crate) pids: RefCell<PidCache>,
    pub(crate) handlers: OwnHandlers,
    /// How many processes the turn has woken.
    woken: Cell<u32>,
}

impl LocalQueue {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, deque: Worker<Token>) -> Self {
        Self {
            shared,
            index,
            deque,
            cache: RefCell::default(),
            pids: RefCell::new(PidCache::new()),
            handlers: OwnHandlers::default(),
            woken: Cell::new(0),
        }
    }

    /// That of the first worker of a scheduler that is not started.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn of_first(shared: &Arc<Shared>) -> Self {
        let deque = shared.take_deques().unwrap().swap_remove(0);
        Self::new(Arc::clone(shared), 0, deque)
    }

    /// The worker begins a turn.
    #[inline]
    pub(crate) fn begin_turn(&self) {
        // Most turns wake nobody, or one. A look costs less than a store.
        if self.woken.get() > 0 {
            self.woken.set(0);
        }
    }

    /// Whether it is one of that scheduler's.
    #[inline]
    pub(crate) fn is_of(&self, shared: &Shared) -> bool {
        ptr::eq(Arc::as_ptr(&self.shared), shared)
    }

    /// The turn is about to wake another process. One that wakes many keeps its worker from them for long:
    /// thieves are to find them exposed, or each that comes for a few interrupts it by a heavy fence.
    #[inline]
    pub(crate) fn note_woken(&self) {
        /// So many are exposed at a time.
        const MANY: u32 = 16;
        self.woken.set(self.woken.get().wrapping_add(1));
        if self.woken.get().is_multiple_of(MANY) {
            self.expose();
        }
    }

    /// Wakes somebody for what is here, who will steal it, while this worker runs something else.
    #[inline]
    pub(crate) fn offer(&self) {
        if !self.deque.is_empty() && self.shared.idle.notify() {
            self.deque.expose();
        }
    }

    /// Apart, so that waking one stays small.
    #[cold]
    #[inline(never)]
    fn expose(&self) {
        self.deque.expose();
    }
}

/// Calls `f` with `queue` as the one of this thread.
pub(crate) fn enter(queue: &LocalQueue, f: impl FnOnce()) {
    struct Leave(*const LocalQueue);
    impl Drop for Leave {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _leave = Leave(CURRENT.replace(queue));
    f();
}

/// Calls `f` as if on another thread: one that is no worker, and in the middle of nothing.
#[cfg(feature = "sim")]
pub(crate) fn leave<R>(f: impl FnOnce() -> R) -> R {
    struct Return(*const LocalQueue);
    impl Drop for Return {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _return = Return(CURRENT.replace(ptr::null()));
    held::nothing(f)
}

/// Calls `f` with this thread's queue, when this thread is a worker of `shared`.
#[inline]
pub(crate) fn with<R>(shared: &Shared, f: impl FnOnce(&LocalQueue) -> R) -> Option<R> {
    with_either(shared, |queue| queue.map(f))
}

/// Calls `f` with this thread's queue, if it is a worker of `shared`.
#[inline]
pub(crate) fn with_either<R>(shared: &Shared, f: impl FnOnce(Option<&LocalQueue>) -> R) -> R {
    with_any(|queue| f(queue.filter(|queue| queue.is_of(shared))))
}

/// Calls `f` with this thread's queue, if it is a worker of some scheduler.
#[inline]
pub(crate) fn with_any<R>(f: impl FnOnce(Option<&LocalQueue>) -> R) -> R {
    // SAFETY: null, or a queue that `enter` has borrowed, which has not returned: it would have put
    // back what was there before.
    f(unsafe { CURRENT.get().as_ref() })
}

/// Whether this thread is no worker of `shared`, and in the middle of nothing.
pub(crate) fn is_outside(shared: &Shared) -> bool {
    held(shared) == (0, 0)
        && held::count(shared, Held::Telling) == 0
        && with(shared, |_| ()).is_none()
}

/// Whether this thread, which is no worker of `shared`, is in a turn of it: it ends processes in a shutdown.
pub(crate) fn ends_processes(shared: &Shared) -> bool {
    held::count(shared, Held::Turn) > 0
}

/// Whether this thread is starting the process with that id, which others can find already.
pub(crate) fn starts(shared: &Shared, id: u64) -> bool {
    held::count(shared, Held::Start(id)) > 0
}

/// How many turns and submissions of `shared` are on this thread's stack.
pub(crate) fn held(shared: &Shared) -> (usize, usize) {
    let runs = |queue: &LocalQueue| shared.turns.on(queue.index).is_some();
    let turns = usize::from(with(shared, runs) == Some(true)) + held::count(shared, Held::Turn);
    (turns, held::count(shared, Held::Submission))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use crate::contain::contain;

    /// The queue of the only worker of a scheduler that is not started.
    fn queue() -> LocalQueue {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        LocalQueue::of_first(&scheduler.shared)
    }

    fn is_current(queue: &LocalQueue) -> bool {
        with(&queue.shared, |current| ptr::eq(current, queue)) == Some(true)
    }

    #[test]
    fn a_queue_is_this_threads_for_as_long_as_the_call() {
        let (outer, inner) = (queue(), queue());
        enter(&outer, || {
            assert!(is_current(&outer) && !is_current(&inner));
            enter(&inner, || {
                assert!(is_current(&inner) && !is_current(&outer));
            });
            assert!(is_current(&outer) && !is_current(&inner));
            let panicked = contain(|| enter(&inner, || panic!("on purpose")));
            assert!(panicked.is_err() && is_current(&outer));
        });
        assert!(!is_current(&outer) && !is_current(&inner));
    }
}
