//! Marks: a number of each process kept by a reader, without memory of its own.
//!
//! **Problem.** The work of processes in a window of time is the difference of two looks at each. A
//! reader that keeps the first look of a million processes allocates for all of them.
//!
//! **Protocol.** Each record has a place for a number. Only one reader at a time has the [`Marks`],
//! from its first look to its last. Another reader waits, or asks again. A new process has the mark
//! 0. The reader may wait long between its looks, so the marks do not keep the scheduler's memory.

use super::Observation;
use super::look::ProcessLook;
use crate::api::handle::Handle;
use crate::runtime::shared::Shared;
use ganger_sync::sync::{Condvar, Mutex, lock};
use std::fmt;
use std::sync::{Arc, Weak};

/// Whether a reader has the marks.
#[derive(Default)]
pub(super) struct Claim {
    is_claimed: Mutex<bool>,
    is_free: Condvar,
}

impl Claim {
    fn try_claim(&self) -> bool {
        !std::mem::replace(&mut *lock(&self.is_claimed), true)
    }

    fn claim(&self) {
        let mut is_claimed = lock(&self.is_claimed);
        while *is_claimed {
            is_claimed = match self.is_free.wait(is_claimed) {
                Ok(is_claimed) => is_claimed,
                Err(poisoned) => poisoned.into_inner(),
            };
        }
        *is_claimed = true;
    }

    fn give(&self) {
        *lock(&self.is_claimed) = false;
        self.is_free.notify_one();
    }
}

/// The right to mark the processes of a scheduler, until it is dropped: see
/// [`Handle::try_marks`].
#[must_use = "a drop gives them to other readers"]
pub struct Marks(Weak<Shared>);

impl Marks {
    /// Keeps a number of a process, in place of an earlier one. Without effect on a process of
    /// another scheduler.
    pub fn set(&self, process: ProcessLook<'_>, mark: u64) {
        if let Some(record) = process.record()
            && process.is_of(self.0.as_ptr())
        {
            record.set_mark(mark);
        }
    }

    /// Returns the kept number of a process; 0 for a process started since, and for an unmarked
    /// process.
    #[must_use]
    pub fn of(&self, process: ProcessLook<'_>) -> u64 {
        process.record().map_or(0, |record| record.mark())
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        // No reader waits for the marks of a scheduler that is gone.
        let shared = self.0.upgrade();
        if let Some(claim) = shared.as_deref().and_then(|it| it.probe.1.0.claim()) {
            claim.give();
        }
    }
}

impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Marks").finish_non_exhaustive()
    }
}

impl Observation {
    fn claim(&self) -> Option<&Claim> {
        self.0.as_deref().map(|it| &it.marks)
    }
}

/// Windows of time, where the scheduler is observed: see
/// [`Builder::observe`](crate::Builder::observe).
impl Handle {
    /// Waits for the marks; none where nothing is observed.
    fn marks(&self) -> Option<Marks> {
        self.shared.probe.1.0.claim()?.claim();
        Some(Marks(Arc::downgrade(&self.shared)))
    }

    /// Returns the marks of the processes, if no other reader has them; `None` where the scheduler
    /// is not observed. Never blocks. For a reader that rests between the portions of its looks;
    /// other readers call [`over_window`](Self::over_window). The marks do not keep the scheduler's
    /// memory.
    ///
    /// ```
    /// use ganger_sched::{Observe, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().observe(Observe::Counts).start()?;
    /// let marks = scheduler.try_marks().expect("no other reader is there");
    /// assert!(scheduler.try_marks().is_none());
    /// scheduler.each_process(|it| marks.set(it, 7));
    /// drop(marks);
    /// assert!(scheduler.try_marks().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_marks(&self) -> Option<Marks> {
        let is_claimed = self.shared.probe.1.0.claim()?.try_claim();
        is_claimed.then(|| Marks(Arc::downgrade(&self.shared)))
    }

    /// Calls `measure` with each live process, then `wait`, and then `look` with each live process,
    /// its present value and its value before, which is 0 for a process started since. So the
    /// reader learns the work of each process in a window of time. Nothing is allocated for a
    /// process.
    ///
    /// O(n) twice, as [`each_process`](Self::each_process). Readers take turns: another call
    /// meanwhile waits. Does nothing, and returns `false`, where the scheduler is not observed.
    ///
    /// ```
    /// use ganger_sched::{Observe, Scheduler};
    /// use std::thread::sleep;
    /// use std::time::Duration;
    ///
    /// let scheduler = Scheduler::builder().observe(Observe::Counts).start()?;
    /// let mut busiest = None;
    /// scheduler.over_window(
    ///     |process| process.counts().map_or(0, |it| it.events),
    ///     || sleep(Duration::from_millis(1)),
    ///     |process, now, before| busiest = busiest.max(Some((now - before, process.pid()))),
    /// );
    /// assert_eq!(busiest, None); // There is no process.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn over_window(
        &self,
        measure: impl Fn(ProcessLook<'_>) -> u64,
        wait: impl FnOnce(),
        mut look: impl FnMut(ProcessLook<'_>, u64, u64),
    ) -> bool {
        let Some(marks) = self.marks() else {
            return false;
        };
        self.each_process(|it| marks.set(it, measure(it)));
        wait();
        self.each_process(|it| look(it, measure(it), marks.of(it)));
        true
    }
}
