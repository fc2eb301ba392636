//! The queue of the worker on this thread, if the thread is a worker.

use crate::base::stats::Counters;
use crate::handlers::commands::OwnHandlers;
use crate::policy::EXPOSED_AT_ONCE;
#[cfg(feature = "sim")]
use crate::probe::{Carrier, Carry};
use crate::probe::{Probe, Push};
#[cfg(feature = "sim")]
use crate::process::dropped;
use crate::runtime::cell::{ProcessCell, Task};
use crate::runtime::frames;
use crate::runtime::pool::Cache;
use crate::runtime::round::Round;
use crate::runtime::shared::Shared;
use crate::runtime::token::Token;
use ganger_deque::Worker;
use ganger_sync::{driving, scoped};
use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

thread_local! {
    /// The queue of the innermost [`enter`] on this thread's stack, or null. The cell has no
    /// destructor. So a look costs a load, and works in the destructors of other thread-locals.
    static CURRENT: Cell<*const LocalQueue> = const { Cell::new(ptr::null()) };

    /// The list of the innermost [`put_aside`] on this thread's stack, or null.
    static ASIDE: Cell<*const Aside> = const { Cell::new(ptr::null()) };
}

/// The processes made ready while this thread is no worker.
struct Aside {
    of: *const Shared,
    tokens: RefCell<Vec<Token>>,
}

thread_local! {
    /// This thread fires timers.
    static FIRING: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread fires timers.
pub(crate) fn is_firing() -> bool {
    FIRING.get()
}

/// Calls `f`, which fires timers.
pub(crate) fn firing(f: impl FnOnce()) {
    scoped(&FIRING, true, f);
}

/// A worker's own data: its queue of ready processes, its caches and its handlers.
pub(crate) struct LocalQueue {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: usize,
    pub(crate) deque: Worker<Token>,
    pub(crate) cache: RefCell<Cache<ProcessCell>>,
    pub(crate) handlers: OwnHandlers,
    /// How many processes this turn has woken.
    woken: Cell<u32>,
    /// How many processes lie in the deque below those woken or stolen by this worker; the maximum
    /// when the deque has none of these.
    below_woken: Cell<usize>,
    /// Until when the worker wakes no sleeper for the processes in the deque; 0 when it wakes
    /// sleepers. See `worker/batch.rs`.
    kept_until: Cell<u64>,
    pub(crate) round: Round,
}

impl LocalQueue {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, deque: Worker<Token>) -> Self {
        Self {
            shared,
            index,
            deque,
            cache: RefCell::default(),
            handlers: OwnHandlers::default(),
            woken: Cell::new(0),
            below_woken: Cell::new(usize::MAX),
            kept_until: Cell::new(0),
            round: Round::default(),
        }
    }

    /// Returns the queue of the first worker of a scheduler that is not started.
    #[cfg(all(test, not(ganger_loom)))]
    pub(crate) fn of_first(shared: &Arc<Shared>) -> Self {
        let deque = shared.start.take_deques().unwrap().swap_remove(0);
        Self::new(Arc::clone(shared), 0, deque)
    }

    /// Pushes a process, and wakes no worker.
    pub(crate) fn push(&self, token: Token) {
        let (probe, push) = (&self.shared.probe, Push::Own(self.index));
        let _pushing = probe.pushing(&token.cell().probe, push, || self.deque.len());
        self.deque.push(token);
    }

    /// Notes that the worker begins a turn.
    pub(crate) fn begin_turn(&self) {
        // Most turns wake at most a single process. A load costs less than a store.
        if self.woken.get() > 0 {
            self.woken.set(0);
        }
    }

    /// Returns whether the worker belongs to the scheduler.
    pub(crate) fn is_of(&self, shared: &Shared) -> bool {
        ptr::eq(Arc::as_ptr(&self.shared), shared)
    }

    /// Counts a process that the turn is about to wake. A turn that wakes many keeps its worker
    /// from them for long. So the worker exposes them to thieves: a thief finding nothing exposed
    /// interrupts the worker by a heavy fence.
    pub(crate) fn note_woken(&self) {
        self.woken.set(self.woken.get().wrapping_add(1));
        if self.woken.get().is_multiple_of(EXPOSED_AT_ONCE) {
            self.expose();
        }
    }

    /// Notes that processes pushed upon the first `below` of the deque are woken or stolen.
    pub(crate) fn begin_woken(&self, below: usize) {
        if below < self.below_woken.get() {
            self.below_woken.set(below);
        }
    }

    /// Returns whether the deque may have a woken or stolen process, to run before a continuing
    /// process.
    pub(crate) fn has_woken(&self) -> bool {
        self.woken_at_most() > 0
    }

    /// Returns the number of woken or stolen processes in the deque, at most.
    pub(crate) fn woken_at_most(&self) -> usize {
        if self.below_woken.get() == usize::MAX {
            return 0;
        }
        let count = self.deque.len().saturating_sub(self.below_woken.get());
        if count == 0 {
            self.end_woken();
        }
        count
    }

    /// Notes that nothing woken is in the deque.
    pub(crate) fn end_woken(&self) {
        self.below_woken.set(usize::MAX);
    }

    /// Wakes a sleeping worker for the processes of the deque, unless they are kept. The woken
    /// worker steals while this worker runs something else.
    pub(crate) fn offer(&self) {
        if self.keeps() {
            return self.offer_kept();
        }
        if !self.deque.is_empty() && self.shared.queues.idle.notify() {
            self.deque.expose();
        }
    }

    /// Offers the deque's processes as [`offer`](Self::offer) does, where the last look found that
    /// the deque was kept.
    #[inline(never)]
    fn offer_kept(&self) {
        // Also when the deque is empty: the time applies to its present processes, not to later
        // ones.
        if self.shared.now() >= self.kept_until.get() {
            self.kept_until.set(0);
            self.offer();
        } else if !self.deque.is_empty() {
            self.shared.queues.idle.defer();
        }
    }

    /// Keeps the processes of the deque until `until`; 0 ends this.
    pub(crate) fn keep_until(&self, until: u64) {
        self.kept_until.set(until);
    }

    /// Returns whether the worker wakes no sleeper for the processes of the deque. The answer holds
    /// until the next pick at least.
    pub(crate) fn keeps(&self) -> bool {
        self.kept_until.get() > 0
    }

    /// Exposes the deque's processes, in a function of its own, so that waking a process stays
    /// small.
    #[cold]
    #[inline(never)]
    fn expose(&self) {
        self.deque.expose();
    }
}

impl Shared {
    /// Returns the id of the process whose step or `init` this thread is in, or zero.
    pub(crate) fn own_process_id(&self) -> u64 {
        let in_step = || self.census.turns.on(self.own_index()?);
        frames::submitted(self).or_else(in_step).unwrap_or_default()
    }

    /// Returns the index of the worker on this thread, if it is a worker.
    pub(crate) fn own_index(&self) -> Option<usize> {
        with(self, |queue| queue.index)
    }

    /// Returns the counters of this thread.
    pub(crate) fn own_counters(&self) -> &Counters {
        self.counters.of(self.own_index())
    }
}

/// Calls `f` with `queue` as the queue of this thread.
pub(crate) fn enter(queue: &LocalQueue, f: impl FnOnce()) {
    scoped(&CURRENT, queue, f);
}

/// Calls `f`, during which this thread is no worker. Returns the tokens taken by [`take_aside`].
pub(crate) fn put_aside(shared: &Shared, f: impl FnOnce()) -> Vec<Token> {
    let aside = Aside {
        of: shared,
        tokens: RefCell::default(),
    };
    scoped(&CURRENT, ptr::null(), || {
        scoped(&ASIDE, &raw const aside, || driving(f));
    });
    aside.tokens.into_inner()
}

/// Takes a ready process of the scheduler, if this thread is in a [`put_aside`] of the same
/// scheduler. Returns whether it is the first.
pub(crate) fn take_aside(shared: &Shared, token: Token) -> Result<bool, Token> {
    // SAFETY: null, or the list of a `put_aside` on this stack. The `put_aside` has not returned,
    // or it would have restored the former pointer.
    match unsafe { ASIDE.get().as_ref() } {
        Some(aside) if ptr::eq(aside.of, shared) => {
            let mut tokens = aside.tokens.borrow_mut();
            tokens.push(token);
            Ok(tokens.len() == 1)
        }
        _ => Err(token),
    }
}

/// Calls `f` as if on another thread, which is no worker and in no call of a scheduler.
#[cfg(feature = "sim")]
pub(crate) fn leave<R>(f: impl FnOnce() -> R) -> R {
    scoped(&CURRENT, ptr::null(), || {
        frames::outside(|| dropped::outside(|| Carrier::uncaused(f)))
    })
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
    // SAFETY: null, or a queue borrowed by an `enter`. The `enter` has not returned, or it would
    // have restored the former pointer.
    f(unsafe { CURRENT.get().as_ref() })
}

/// Returns the process whose turn this thread is in, if it is a worker, and the process is in the
/// registry.
pub(crate) fn own_process() -> Option<Task> {
    with_any(|queue| {
        let LocalQueue { shared, index, .. } = queue?;
        shared.find(shared.running_on(*index)?)
    })
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use crate::base::contain::contain;
    use crate::noop_process::NoopProcess;

    /// Returns the queue of the only worker of a scheduler that is not started.
    fn queue() -> LocalQueue {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        LocalQueue::of_first(&scheduler.shared)
    }

    fn is_current(queue: &LocalQueue) -> bool {
        with(&queue.shared, |current| ptr::eq(current, queue)) == Some(true)
    }

    /// Checks that a worker that has left the driver with short work wakes a sleeper once the work
    /// lasts.
    // pins: G2
    #[test]
    fn a_sleeper_is_woken_for_what_is_kept_when_that_lasts() {
        let builder = Scheduler::builder().workers(2);
        // No worker serves them.
        let builder = builder.shutdown_deadline(std::time::Duration::ZERO);
        let scheduler = builder.build().unwrap();
        for _ in 0..2 {
            drop(scheduler.submit(NoopProcess, "main", ()).unwrap());
        }
        let shared = &scheduler.shared;
        let (idle, queue) = (&shared.queues.idle, LocalQueue::of_first(shared));
        let sleeping = || idle.snapshot().sleeping;
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| idle.sleep(1, false, || false, || false, || None));
            while sleeping() == 0 {
                std::thread::yield_now();
            }
            queue.keep_until(u64::MAX);
            enter(&queue, || {
                while let Some(token) = shared.queues.global.pop() {
                    shared.schedule(token);
                }
            });
            queue.offer();
            assert_eq!((queue.deque.len(), sleeping()), (2, 1));
            assert!(!shared.has_work_beside(0) && shared.has_work_beside(1));
            queue.keep_until(1);
            queue.offer();
            assert!(!queue.keeps());
            assert_eq!(sleeping(), 0);
            assert_eq!(
                sleeper.join().unwrap(),
                crate::queues::idle::Woken::Notified
            );
        });
        // For the scheduler's end, as no worker has these tokens.
        while let Some(token) = queue.deque.pop() {
            shared.queues.global.push(token);
        }
    }

    /// Checks the span on an empty deque, as turns of processes from other queues leave it at each
    /// pick.
    // pins: G2
    #[test]
    fn nothing_is_kept_for_longer_than_the_span_beside_an_empty_deque() {
        let queue = queue();
        queue.keep_until(u64::MAX);
        queue.offer();
        assert!(queue.keeps(), "the span is not over");
        queue.keep_until(1);
        queue.offer();
        assert!(!queue.keeps());
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
