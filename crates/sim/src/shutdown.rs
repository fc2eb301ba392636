//! The shutdown of a simulated scheduler, between all other moves.
//!
//! A shutdown begins when the test asks for it, between two moves or in the middle of a move. From
//! then on the simulation checks its progress before each move. Once all processes have ended, the
//! workers leave. When the deadline passes first, the remaining processes are forced to end.

use crate::failure::STUCK;
use crate::faults::LATE;
use crate::rt::Rt;
use ganger_sched::StopReport;
use std::time::Duration;

impl Rt<'_> {
    /// Stops the scheduler like [`Handle::stop`](ganger_sched::Handle::stop), by the clock of the
    /// simulation.
    ///
    /// # Panics
    /// As [`step`](Self::step); and when a live process remains outside of any call.
    #[track_caller]
    pub fn stop(&self, deadline: Duration) -> StopReport {
        self.set_end(deadline);
        if !self.machine(|machine| machine.is_stopping()) {
            self.machine(|machine| machine.begin_stop());
        }
        self.go_on_stopping();
        while !self.machine(|machine| machine.is_over()) {
            if !self.step() {
                self.fail(format!("the workers have not left, and {STUCK}"));
            }
        }
        let live = self.machine(|machine| machine.live());
        if live > 0 {
            self.fail(format!("{live} processes are left after the shutdown"));
        }
        self.machine(|machine| machine.report())
    }

    /// Goes on with a shutdown that has begun.
    pub(crate) fn go_on_stopping(&self) {
        if self.shutdown.is_halted.get() || !self.machine(|machine| machine.is_stopping()) {
            return;
        }
        if let Some(deadline) = self.machine(|machine| machine.take_deadline()) {
            self.set_end(deadline);
        }
        let end = self.shutdown.end.get().unwrap_or_else(|| {
            // The shutdown has begun as a fault, without a deadline.
            let micros = usize::try_from(LATE.as_micros()).unwrap_or(usize::MAX);
            self.set_end(Duration::from_micros(
                self.choose_for("shutdown by", micros) as u64,
            ))
        });
        if self.machine(|machine| machine.live()) > 0 {
            if self.machine(|machine| machine.is_forced()) {
                if self.has_grace() {
                    return;
                }
            } else if self.now() < end {
                return;
            } else {
                self.machine(|machine| machine.force());
            }
        }
        self.shutdown.is_halted.set(true);
        self.machine(|machine| machine.halt());
    }

    /// Sets the deadline, unless an earlier deadline is set; returns the earlier of both.
    fn set_end(&self, deadline: Duration) -> Duration {
        let end = self.now().saturating_add(deadline);
        let end = self
            .shutdown
            .end
            .get()
            .map_or(end, |before| before.min(end));
        self.shutdown.end.set(Some(end));
        self.machine(|machine| machine.must_stop_by(end));
        if end > self.now() {
            // A timer without an action, so that time goes on until then.
            self.clock.after(end.saturating_sub(self.now()), || {});
        }
        end
    }

    /// Whether processes that are forced to end have more time before the workers leave.
    fn has_grace(&self) -> bool {
        self.is_faulty() && !self.happens("shutdown is forced", self.faults.shutdown_is_forced)
    }

    /// Whether the fault of an early deadline can still happen.
    fn is_faulty(&self) -> bool {
        self.faults.shutdown_is_forced > 0 && !self.choices.borrow().is_calm()
    }
}
