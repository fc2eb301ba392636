//! Repeated looks at the places of steps: the samples of a profiler.

use crate::api::handle::Handle;
use crate::runtime::shared::Shared;
use crate::runtime::turns::NOTHING;
use ganger_os::{Functions, Sampler, Stack, Stacks, WithId};
use ganger_proc_api::Pid;
use ganger_sync::atomic::{AtomicBool, Ordering};
use std::fmt;

/// Why no looks at the steps can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StepLooksRefused {
    /// The builder has not allowed it.
    #[error(
        "this scheduler was built without profiles: allow them by `Builder::profiles`, which needs \
         the feature `backtraces`, and Linux on x86-64 or AArch64"
    )]
    NotAllowed,
    /// Another thread looks at the moment.
    #[error("another profile of this scheduler is being made: try again when it is ready")]
    Busy,
}

/// Where a step was.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct StepStack<'a> {
    /// The process. The process may have ended since.
    pub pid: Pid,
    /// The worker: its place in [`Handle::worker_stats`](crate::Handle::worker_stats).
    pub worker: usize,
    /// The addresses of the frames of its thread, the innermost first, including those outside of
    /// the step. For a calling frame, the address of the call.
    pub frames: &'a [u64],
}

/// Looks at the workers' steps: see [`Handle::step_looks`].
pub struct StepLooks<'a> {
    shared: &'a Shared,
    sampler: &'a dyn Sampler,
    stacks: Box<dyn Stacks + 'a>,
    _only: Only<'a>,
}

impl Handle {
    /// Begins to look at the workers' steps, for a profiler. Only one thread at a time may do so.
    ///
    /// Copies the unwind tables of the program: about a millisecond for a large program.
    ///
    /// # Errors
    /// [`StepLooksRefused`].
    pub fn step_looks(&self) -> Result<StepLooks<'_>, StepLooksRefused> {
        let reporting = &self.shared.reporting;
        let sampler = reporting.backtraces.as_deref();
        let sampler = sampler.filter(|_| self.shared.config.profiles);
        let sampler = sampler.ok_or(StepLooksRefused::NotAllowed)?;
        let only = Only::of(&reporting.is_profiled).ok_or(StepLooksRefused::Busy)?;
        Ok(StepLooks {
            shared: &self.shared,
            sampler,
            stacks: sampler.stacks(),
            _only: only,
        })
    }

    /// Returns whether a thread looks at the steps at the moment: [`step_looks`](Self::step_looks)
    /// would be refused.
    #[must_use]
    pub fn is_looked_at(&self) -> bool {
        // Ordering: Relaxed: nothing is read on the strength of this load.
        self.shared.reporting.is_profiled.load(Ordering::Relaxed)
    }
}

impl StepLooks<'_> {
    /// Asks all busy workers at once where in the code they are, and calls `each` for each worker
    /// inside a step. Returns the number of asked workers: some were between two steps, and a
    /// thread without a processor gives no answer within 10 ms, which is the longest wait of this
    /// call.
    ///
    /// The answers are exact, however short the steps are: the signal's handler reads the running
    /// process. A worker that sleeps or looks for work is not asked.
    pub fn look(&mut self, mut each: impl FnMut(StepStack<'_>)) -> usize {
        let shared = self.shared;
        let slots = &shared.worker_slots;
        let mut busy = (0..slots.used()).filter(|&worker| !slots.is_looking(worker));
        let with_thread = |worker, f: &WithId<'_>| slots.with_thread(worker, f);
        let mut see = |stack: Stack<'_>| {
            if stack.doing != NOTHING {
                each(StepStack {
                    pid: Pid::new(shared.host, stack.doing),
                    worker: stack.slot,
                    frames: stack.frames,
                });
            }
        };
        self.stacks.look(&mut busy, &with_thread, &mut see)
    }

    /// Returns the functions of the address of a frame, the innermost first. With `is_end` this
    /// frame runs the step, and frames further out are the scheduler's.
    ///
    /// Blocks: the first call reads the debug information of the program.
    #[must_use]
    pub fn functions(&self, address: u64) -> Functions {
        self.sampler.functions(address)
    }
}

impl fmt::Debug for StepLooks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepLooks").finish_non_exhaustive()
    }
}

/// The right to look.
struct Only<'a>(&'a AtomicBool);

impl<'a> Only<'a> {
    fn of(is_taken: &'a AtomicBool) -> Option<Self> {
        // Ordering: Relaxed: nothing is read on the strength of this swap.
        let is_free = !is_taken.swap(true, Ordering::Relaxed);
        // A value is made where the right is free alone: its drop gives the right back.
        is_free.then(|| Self(is_taken))
    }
}

impl Drop for Only<'_> {
    fn drop(&mut self) {
        // Ordering: Relaxed: nothing is read on the strength of this store.
        self.0.store(false, Ordering::Relaxed);
    }
}
