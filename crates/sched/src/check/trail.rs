//! Where a process may have been before its worker had it, and for how many picks: a note for each
//! steal.
//!
//! **Problem.** The promise is about the picks of all workers that have a process, in turn. A thief
//! moves many processes without a look at any. **Rejected.** A note on each stolen process: the
//! thief would have to go over them, and would be slower than the thief to be checked.
//!
//! **Protocol.** A thief notes its own picks, its victim's picks, and the victim's notes of its own
//! last steal. A worker steals when its deque is empty. So a process in its deque, neither pushed
//! nor taken from the global queue, has come with its last steal. From there the notes lead back to
//! the worker that queued the process.
//!
//! The victim's notes are right for the stolen processes if the victim has put nothing into its
//! deque by a steal of its own between the thief's look at the notes and the theft. A worker steals
//! while its version is odd, so the thief reads the victim's version before and after. When the
//! version was odd, or has changed, the thief does not know where the processes come from. Their
//! wait then counts from the steal: fewer picks than the true number, never more.
//!
//! A worker that takes over from a relieved worker puts the relieved worker's processes on top of
//! its own. Then its own are before them as well. A worker may also take a single process from a
//! worker with more, and run it at once, though its own deque is not empty. The notes of this
//! process lead back from the next pick.

use super::Checker;
use crate::probe::Theft;
use ganger_sync::atomic::{AtomicU64, Ordering, fence};
use ganger_sync::sync::lock;
use std::sync::Arc;

/// How many steals a note leads back.
const DEPTH: u32 = 8;

/// A worker's last steal.
pub(super) struct Stolen {
    /// How many picks it had made.
    picks: u64,
    /// How many processes were below them.
    above: u64,
    /// The former place of the stolen processes, if known.
    from: Option<Stay>,
    /// How many steals this leads back.
    depth: u32,
}

/// A worker when it was stolen from.
struct Stay {
    worker: usize,
    /// How many picks it had made.
    picks: u64,
    stolen: Option<Arc<Stolen>>,
}

/// A worker as it was just before a thief tried to steal from it.
#[derive(Default)]
pub(crate) struct Observed(Option<(u64, Stay)>);

/// The former place of a process taken by a worker and about to run, if known.
pub(super) struct Fetched(Option<Stay>);

/// The record of a queued process.
pub(super) struct Queued<'a> {
    /// The worker in whose deque it was put; none for the global queue.
    pub(super) by: Option<usize>,
    /// How many picks each worker had made then.
    pub(super) picks: &'a [AtomicU64],
}

/// How long a process has waited, at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) picks: u64,
    /// At most how many others were put before it meanwhile.
    pub(super) above: u64,
}

impl Queued<'_> {
    /// Returns its wait when it is picked at once by its fetcher.
    pub(super) fn wait_of_fetched(&self, Fetched(from): &Fetched) -> Wait {
        let before = from.as_ref().map(|stay| self.wait_at(stay));
        let Wait { picks, above } = before.unwrap_or_default();
        let picks = picks + 1;
        Wait { picks, above }
    }

    fn wait_at(&self, stay: &Stay) -> Wait {
        self.wait(stay.worker, stay.picks, stay.stolen.as_deref())
    }

    /// Returns its wait until a worker that has it, with the last steal `stolen`, has made `until`
    /// picks.
    pub(super) fn wait(&self, worker: usize, until: u64, stolen: Option<&Stolen>) -> Wait {
        let noted = self.by.is_none_or(|by| by == worker);
        // Ordering: Relaxed: stored before the push was marked as over.
        let noted = noted.then(|| self.picks[worker].load(Ordering::Relaxed));
        let direct = noted.map(|noted| until.saturating_sub(noted));
        // A process queued after the steal has not come with it.
        let Some(stolen) = stolen.filter(|stolen| noted.is_none_or(|it| it <= stolen.picks)) else {
            let picks = direct.unwrap_or_default();
            return Wait { picks, above: 0 };
        };
        let before = stolen.from.as_ref().map(|stay| self.wait_at(stay));
        let Wait { picks, above } = before.unwrap_or_default();
        let picks = picks + until.saturating_sub(stolen.picks);
        Wait {
            // The process may also have been taken from the global queue after the steal.
            picks: match (self.by, direct) {
                (None, Some(direct)) => picks.min(direct),
                _ => picks,
            },
            above: above + stolen.above,
        }
    }
}

impl Checker {
    /// Observes the worker before a thief steals from it.
    pub(super) fn observe(&self, victim: usize) -> Observed {
        let slot = &self.slots[victim];
        // Ordering: Acquire pairs with the Release in `Slot::end`: the notes of the worker's last
        // picks are seen.
        let version = slot.version.load(Ordering::Acquire);
        if version % 2 == 1 {
            return Observed(None);
        }
        let stay = Stay {
            worker: victim,
            // Ordering: Relaxed: the version orders it.
            picks: slot.picks.load(Ordering::Relaxed),
            stolen: lock(&slot.stolen).clone(),
        };
        Observed(Some((version, stay)))
    }

    /// Notes a worker's steal from the observed worker.
    pub(super) fn stole(&self, worker: usize, observed: Observed, theft: Theft) {
        match theft {
            Theft::Half => self.note_steal(worker, 0, self.confirm(observed)),
            Theft::One => {
                *lock(&self.slots[worker].fetched) = Some(Fetched(self.confirm(observed)));
            }
            Theft::Onto(above) => self.note_steal(worker, above as u64, None),
        }
    }

    /// Returns the place, at the observation, of the processes stolen since, if known.
    fn confirm(&self, Observed(seen): Observed) -> Option<Stay> {
        // Ordering: Acquire pairs with the Release fence in `Slot::begin`: a thief that stole a
        // process put into the deque after that fence sees a later version than it has observed.
        fence(Ordering::Acquire);
        let seen = seen.filter(|(version, stay)| {
            // Ordering: Relaxed: the fence orders it.
            self.slots[stay.worker].version.load(Ordering::Relaxed) == *version
        });
        seen.map(|(_, stay)| stay)
    }

    fn note_steal(&self, worker: usize, above: u64, from: Option<Stay>) {
        let slot = &self.slots[worker];
        let leads = |stay: &Stay| stay.stolen.as_ref().map_or(0, |stolen| stolen.depth);
        let from = from.filter(|stay| leads(stay) < DEPTH);
        let stolen = Stolen {
            // Ordering: Relaxed: this thread writes it.
            picks: slot.picks.load(Ordering::Relaxed),
            above,
            depth: from.as_ref().map_or(0, |stay| leads(stay) + 1),
            from,
        };
        *lock(&slot.stolen) = Some(Arc::new(stolen));
    }
}
