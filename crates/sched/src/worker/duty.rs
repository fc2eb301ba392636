//! What a worker does besides taking turns: it gives its place away and waits to be needed again, and says
//! which steps have kept others waiting.

use super::Worker;
use crate::crew::{Next, Relief, Untold};
use crate::reports::{Line, LongStep};
use ganger_mpsc::node_cache;
use std::sync::Arc;

impl Worker<'_> {
    /// It is called to something else than turns.
    #[cold]
    pub(super) fn answer(&mut self) -> Next {
        if self.shared.crew.is_relieved(self.queue.index) {
            return self.stand_down();
        }
        self.report_untold();
        // A subscriber may have taken its time.
        if self.shared.crew.is_relieved(self.queue.index) {
            return self.stand_down();
        }
        Next::OnDuty
    }

    /// Somebody has taken this worker's place: leaves what it has to the others, and waits until it is
    /// needed.
    pub(super) fn stand_down(&mut self) -> Next {
        loop {
            let next = self.stand_down_once();
            let is_halted = self.shared.shutdown.is_halted();
            // A subscriber may take its time, so that somebody takes the place of who tells. Nobody would report
            // a turn that it took then.
            if next == Next::Leave || is_halted || !self.shared.crew.is_relieved(self.queue.index) {
                return next;
            }
        }
    }

    fn stand_down_once(&mut self) -> Next {
        let shared = self.shared;
        shared.reports.end(self.queue.index);
        if shared.shutdown.is_halted() {
            // Whatever is queued is to be run once more, and then all is over.
            return Next::OnDuty;
        }
        self.give_away();
        // It sends nothing for a while.
        node_cache::end_runs();
        let (keep, is_halted) = (shared.config.keep_spares, || shared.shutdown.is_halted());
        let next = shared.crew.stand_down(self.queue.index, keep, is_halted);
        self.come_back(next);
        next
    }

    pub(super) fn give_away(&mut self) {
        let shared = self.shared;
        self.look_on();
        // After a turn nobody has said yet that this worker moves processes.
        shared.check.begin_pick(self.queue.index);
        while let Some(token) = self.take_oldest() {
            shared.check.move_global(&shared.global, token);
        }
        shared.idle.notify_from_outside();
        shared.check.end_pick(self.queue.index);
    }

    pub(super) fn come_back(&mut self, next: Next) {
        self.rotation.restart(self.shared.time.nanos());
        // One that leaves tells nothing: the monitor would take it for a worker on duty that is stuck.
        if next == Next::OnDuty {
            self.report();
            self.shared.check.begin_pick(self.queue.index);
        }
    }

    /// Reports the step whose worker's place this one has taken, if so, and what else there is to report.
    ///
    /// Not the monitor: a subscriber may wait for what that very step holds. Then this worker is relieved
    /// in turn, as if it were in a turn.
    pub(super) fn report(&mut self) {
        let relief = self.shared.crew.take_report(self.queue.index);
        if let Some(relief) = relief {
            self.tell(relief);
        }
        self.report_untold();
    }

    /// Reports what nobody has reported before: steps of workers whose places others have taken.
    pub(super) fn report_untold(&mut self) {
        while let Some(untold) = self.shared.crew.take_untold(self.queue.index) {
            match untold {
                Untold::Step(relief) => self.tell(relief),
                Untold::NoSpare(error) => {
                    self.tell_of(|worker| error.log(worker.shared.config.max_spares));
                }
            }
        }
    }

    fn tell(&mut self, relief: Relief) {
        let Relief {
            step,
            turn,
            line: Line::Tell { suppressed },
        } = relief
        else {
            return;
        };
        self.tell_of(|worker| {
            let backtrace = worker.backtrace(&step, turn);
            step.log(suppressed, backtrace.as_deref());
        });
    }

    /// A subscriber is told something, which may take as long as a turn.
    fn tell_of(&mut self, tell: impl FnOnce(&Self)) {
        self.is_looking = false;
        self.shared.crew.set_looking(self.queue.index, false);
        tell(self);
        self.look_on();
    }

    /// Where the step is, if backtraces are taken and it is still in that turn of its worker; and adds it
    /// to what is known of the step.
    fn backtrace(&self, step: &LongStep, turn: u64) -> Option<Arc<str>> {
        debug_assert!(
            !self.is_looking,
            "it takes its time, and may have to be relieved"
        );
        let (shared, worker) = (self.shared, step.worker);
        let backtraces = shared.backtraces.as_ref()?;
        let is_current = || shared.is_in_turn(worker, turn, step.pid);
        let with_thread = |f: &dyn Fn(u32) -> bool| shared.crew.with_thread(worker, f);
        let backtrace = backtraces.of(worker, is_current, with_thread)?;
        shared.reports.set_backtrace(worker, turn, &backtrace);
        Some(backtrace)
    }
}
