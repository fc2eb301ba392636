//! The checker as a probe: the change of a mark at each point.

use super::marks::Marks;
use super::note::Note;
use super::trail::Observed;
use super::{Checker, Slot};
use crate::config::Config;
use crate::probe::{Probe, Push, Scheduler, Theft};
use crate::runtime::shared::Shared;
use ganger_sync::atomic::{AtomicU64, Ordering};
use ganger_sync::sync::MutexGuard;
use std::sync::Arc;

pub(crate) struct Checks(Checker);

impl Checks {
    pub(super) fn checker(&self) -> &Checker {
        &self.0
    }
}

impl Probe for Checks {
    type Process = Marks;
    type Sent = ();
    type Observed = Observed;
    type Guard<'a> = Guard<'a>;

    fn new(config: &Config, slots: usize) -> Self {
        Self(Checker::new(config, slots))
    }

    fn process(&self) -> Marks {
        Marks::default()
    }

    fn looking(&self, worker: usize) {
        self.0.slots[worker].begin();
    }

    fn settled(&self, worker: usize) {
        self.0.slots[worker].settle();
    }

    fn falling_asleep(&self, worker: usize, scheduler: &dyn Scheduler) {
        self.0.slots[worker].settle();
        self.0.audit(Shared::of(scheduler));
    }

    fn waking(&self, worker: impl Fn() -> Option<usize> + Copy) -> Guard<'_> {
        let checker = &self.0;
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
        let checker = &self.0;
        if let Push::Own(worker) = push {
            let note = Note::new(Some(worker), before(), checker);
            // The worker makes no pick before the push is over.
            note.settle(checker);
            process.queue(&Arc::new(note));
            return Guard::Nothing;
        }
        if push == Push::Urgent {
            // After this push, other processes may wait longer.
            // Ordering: Relaxed, as in `Checker::bound_of`.
            checker.is_urgent.store(true, Ordering::Relaxed);
        }
        if push == Push::Arrival {
            // Ordering: Relaxed, as in `Checker::bound_of`.
            checker.has_arrivals.store(true, Ordering::Relaxed);
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
        process.pick(worker, &self.0);
    }

    fn observe(&self, victim: usize) -> Observed {
        self.0.observe(victim)
    }

    fn stole(&self, thief: usize, _: (usize, usize), observed: Observed, theft: Theft) {
        self.0.stole(thief, observed, theft);
    }

    fn watching(&self) {
        self.0.monitor().begin();
    }

    fn watched(&self) {
        // Ordering: Relaxed: the version orders it.
        let looks = self.0.looks.load(Ordering::Relaxed);
        // Ordering: Relaxed: the version orders it.
        self.0.looks.store(looks + 1, Ordering::Relaxed);
        self.0.monitor().end();
    }

    fn dozing(&self) {
        self.0.monitor().end();
    }

    fn turn_begins(&self, process: &Marks) {
        process.begin();
    }

    fn turn_ends(&self, process: &Marks) {
        process.end();
    }
}

/// A push or a debt, until it is dropped.
#[derive(Default)]
pub(crate) enum Guard<'a> {
    /// An outer section of this thread goes on.
    #[default]
    Nothing,
    /// The worker owes a wake-up.
    Worker(&'a Slot),
    /// Another thread owes a wake-up.
    Other(&'a AtomicU64),
    /// A push to a shared queue.
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
