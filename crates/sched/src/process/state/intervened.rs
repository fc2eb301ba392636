//! The transitions of a process with requests in the table of interventions: see
//! `runtime/interventions.rs`.

#[cfg(any(test, feature = "observe"))]
use super::ENDED;
use super::{INTERVENED, READY, SUSPENDED, State, WATCHED};
use ganger_sync::atomic::Ordering;

impl<T> State<T> {
    /// Sends the worker to the interventions before the next step. `false` when the process has
    /// ended. Under the lock of the table.
    #[cfg(any(test, feature = "observe"))]
    #[must_use]
    pub(crate) fn intervene(&self) -> bool {
        // Ordering: AcqRel: a worker that reads the mark takes the lock and finds the request. A
        // caller after the end finds the process ended, because the end pairs with this Acquire.
        self.marks.fetch_or(INTERVENED, Ordering::AcqRel) & ENDED == 0
    }

    /// Returns whether the worker must look at the interventions. For a thread that has marked the
    /// process as terminated or ended, and for the owner of the token.
    #[cfg_attr(
        not(any(test, feature = "observe")),
        expect(clippy::bad_bit_mask, reason = "the mark has no bit then")
    )]
    pub(crate) fn is_intervened(&self) -> bool {
        self.marks() & INTERVENED != 0
    }

    /// Clears the mark after the last request. Under the lock of the table.
    pub(crate) fn end_interventions(&self) {
        // Ordering: Relaxed: the lock orders the mark.
        self.marks.fetch_and(!INTERVENED, Ordering::Relaxed);
    }

    /// Changes `Running -> Suspended`, by the worker, before the run token goes into the table.
    pub(crate) fn suspend(&self) {
        self.enter(SUSPENDED);
    }

    /// Changes `Suspended -> Ready`, by the thread that has taken the run token out of the table.
    pub(crate) fn release(&self) {
        self.enter(READY);
    }

    /// Returns whether the process has been watched, or intervened in. After
    /// [`complete`](Self::complete): a thread missed here has seen the end.
    pub(crate) fn is_attended(&self) -> bool {
        self.marks() & (WATCHED | INTERVENED) != 0
    }
}
