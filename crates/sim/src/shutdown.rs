//! The shutdown of a simulated scheduler, between all other moves.
//!
//! A shutdown begins when the test asks for it, between two moves or in the middle of a move. From
//! then on the simulation checks its progress before each move. Once all processes have ended, the
//! workers leave. When the deadline passes first, the remaining processes are forced to end.

use crate::failure::STUCK;
use crate::faults::LATE;
use crate::moves::Core;
use crate::rt::Rt;
use crate::seat::Seat;
use ganger_sched::StopReport;
use std::rc::Rc;
use std::time::Duration;

impl Rt<'_> {
    /// Stops the scheduler like [`Handle::stop`](ganger_sched::Handle::stop), by the clock of the
    /// simulation.
    ///
    /// # Panics
    /// As [`step`](Self::step); and when a live process remains outside of any call.
    #[track_caller]
    pub fn stop(&self, deadline: Duration) -> StopReport {
        self.core.stop(&self.seat, deadline)
    }
}

impl<'a> Core<'a> {
    #[track_caller]
    pub(crate) fn stop(&self, seat: &Rc<Seat<'a>>, deadline: Duration) -> StopReport {
        let machine = &seat.machine;
        self.set_end(seat, deadline);
        if !machine.is_stopping() {
            self.enter(seat, || machine.begin_stop());
        }
        self.go_on_stopping(seat);
        while !machine.is_over() {
            if !self.step() {
                self.fail(format!("the workers have not left, and {STUCK}"));
            }
        }
        let live = machine.live();
        if live > 0 {
            self.fail(format!("{live} processes are left after the shutdown"));
        }
        machine.report()
    }

    /// Goes on with a begun shutdown.
    pub(crate) fn go_on_stopping(&self, seat: &Rc<Seat<'a>>) {
        let machine = &seat.machine;
        if seat.shutdown.is_halted.get() || !machine.is_stopping() {
            return;
        }
        if let Some(deadline) = machine.take_deadline() {
            self.set_end(seat, deadline);
        }
        let end = seat.shutdown.end.get().unwrap_or_else(|| {
            // The shutdown has begun as a fault, without a deadline.
            let micros = usize::try_from(LATE.as_micros()).unwrap_or(usize::MAX);
            let deadline = Duration::from_micros(self.choose_for("shutdown by", micros) as u64);
            self.set_end(seat, deadline)
        });
        if machine.live() > 0 {
            if machine.is_forced() {
                if self.has_grace() {
                    return;
                }
            } else if seat.clock.now() < end {
                return;
            } else {
                self.enter(seat, || machine.force());
            }
        }
        seat.shutdown.is_halted.set(true);
        machine.halt();
    }

    /// Sets the deadline, unless an earlier deadline is set; returns the earlier of both.
    fn set_end(&self, seat: &Seat<'a>, deadline: Duration) -> Duration {
        let (own, now) = (&seat.shutdown.end, seat.clock.now());
        let end = now.saturating_add(deadline);
        let end = own.get().map_or(end, |before| before.min(end));
        own.set(Some(end));
        seat.machine.must_stop_by(end);
        if end > now {
            // A timer without an action, so that time goes on until then.
            seat.clock.after(end.saturating_sub(now), || {});
        }
        end
    }

    /// Returns whether processes that are forced to end have more time before the workers leave.
    fn has_grace(&self) -> bool {
        self.is_faulty() && !self.happens("shutdown is forced", self.faults.shutdown_is_forced)
    }

    /// Returns whether the fault of an early deadline can still happen.
    fn is_faulty(&self) -> bool {
        self.faults.shutdown_is_forced > 0 && !self.choices.borrow().is_calm()
    }
}
