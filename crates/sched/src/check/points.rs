//! The checker as a probe: which point changes which mark.

use super::marks::Marks;
use super::note::Note;
use super::trail::Observed;
use super::{Checker, Slot};
use crate::base::config::Config;
use crate::core::shared::Shared;
use crate::probe::{Probe, Push, Scheduler, Theft};
use ganger_sync::atomic::{AtomicU64, Ordering};
use ganger_sync::sync::MutexGuard;
use std::sync::Arc;

/// None when nothing is to be checked.
pub(crate) struct Checks(Option<Box<Checker>>);

impl Checks {
    pub(super) fn checker(&self) -> Option<&Checker> {
        self.0.as_deref()
    }

    /// Checks the queues: see [`audit`](super::audit).
    #[cfg(feature = "sim")]
    pub(crate) fn audit(&self, shared: &Shared) -> bool {
        self.checker().is_some_and(|checker| checker.audit(shared))
    }
}

impl Probe for Checks {
    type Process = Marks;
    type Sent = ();
    type Observed = Observed;
    type Guard<'a> = Guard<'a>;

    fn new(config: &Config, slots: usize) -> Self {
        let new = || Box::new(Checker::new(config, slots));
        Self(config.is_checked.then(new))
    }

    fn looking(&self, worker: usize) {
        if let Some(checker) = &self.0 {
            checker.slots[worker].begin();
        }
    }

    fn settled(&self, worker: usize) {
        if let Some(checker) = &self.0 {
            checker.slots[worker].settle();
        }
    }

    fn falling_asleep(&self, worker: usize, scheduler: &dyn Scheduler) {
        if let Some(checker) = &self.0 {
            checker.slots[worker].settle();
            checker.audit(Shared::of(scheduler));
        }
    }

    fn waking(&self, worker: impl Fn() -> Option<usize> + Copy) -> Guard<'_> {
        let Some(checker) = &self.0 else {
            return Guard::Nothing;
        };
        match worker() {
            Some(worker) => {
                let slot = &checker.slots[worker];
                if slot.begin() {
                    Guard::Worker(slot)
                } else {
                    Guard::Nothing
                }
            }
            None => {
                // Ordering: SeqCst here and in `drop`; the global queue's push is as strong.
                checker.begun.fetch_add(1, Ordering::SeqCst);
                Guard::Other(&checker.over)
            }
        }
    }

    fn pushing(&self, process: &Marks, push: Push, before: impl Fn() -> usize + Copy) -> Guard<'_> {
        let Some(checker) = &self.0 else {
            return Guard::Nothing;
        };
        if let Push::Own(worker) = push {
            let note = Note::new(Some(worker), before(), checker);
            // The worker makes no pick before the push is over.
            note.settle(checker);
            process.queue(&Arc::new(note));
            return Guard::Nothing;
        }
        if push == Push::Urgent {
            // After this, others may wait longer.
            // Ordering: Relaxed, as in `Checker::bound_of`.
            checker.is_urgent.store(true, Ordering::Relaxed);
        }
        let put = checker.put(before);
        if let Guard::Put { note, .. } = &put {
            if push == Push::Moved {
                process.note(note);
            } else {
                process.queue(note);
            }
        }
        put
    }

    fn picked(&self, worker: usize, process: &Marks) {
        if let Some(checker) = &self.0 {
            process.pick(worker, checker);
        }
    }

    fn observe(&self, victim: usize) -> Observed {
        let seen = self.0.as_ref().map(|checker| checker.observe(victim));
        seen.unwrap_or_default()
    }

    fn stole(&self, thief: usize, observed: Observed, theft: Theft) {
        if let Some(checker) = &self.0 {
            checker.stole(thief, observed, theft);
        }
    }

    fn watching(&self) {
        if let Some(checker) = &self.0 {
            checker.monitor().begin();
        }
    }

    fn watched(&self) {
        if let Some(checker) = &self.0 {
            // Ordering: Relaxed: the version orders it.
            let looks = checker.looks.load(Ordering::Relaxed);
            // Ordering: Relaxed, as above.
            checker.looks.store(looks + 1, Ordering::Relaxed);
            checker.monitor().end();
        }
    }

    fn dozing(&self) {
        if let Some(checker) = &self.0 {
            checker.monitor().end();
        }
    }

    fn turn_begins(&self, process: &Marks) {
        if self.0.is_some() {
            process.begin();
        }
    }

    fn turn_ends(&self, process: &Marks) {
        if self.0.is_some() {
            process.end();
        }
    }
}

/// What goes on until it is dropped.
#[derive(Default)]
pub(crate) enum Guard<'a> {
    /// Nothing is checked, or an outer section of this thread goes on.
    #[default]
    Nothing,
    /// The worker owes a wake-up.
    Worker(&'a Slot),
    /// Another thread owes one.
    Other(&'a AtomicU64),
    /// A push to a queue that all share.
    Put {
        checker: &'a Checker,
        note: Arc<Note>,
        _one: MutexGuard<'a, ()>,
    },
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        match self {
            Self::Nothing => {}
            Self::Worker(slot) => slot.end(),
            Self::Other(over) => {
                // Ordering: SeqCst, as in `Checks::waking`.
                over.fetch_add(1, Ordering::SeqCst);
            }
            Self::Put { checker, note, .. } => note.settle(checker),
        }
    }
}
