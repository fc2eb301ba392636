//! Replaces a process by another: create, initialise, close the old process.

use super::Turn;
use crate::base::contain::{contain, discard, log};
use crate::probe::Probe;
use crate::process::dropped;
use crate::process::exit_actions::run_all;
use crate::process::process_box::ProcessBox;
use crate::reports::life::LifeChange;
use crate::runtime::lent_context::LentContext;
use crate::runtime::turn_place::TurnPlace;
use crate::turn::finish::close;
use ganger_proc_api::{
    CommandError, ExitCause, Payloads, Process, Symbol, UpgradeError, UpgradeRequest, UpgradeTarget,
};
use ganger_sync::failing;
use tracing::Level;

impl<'a, P: TurnPlace<'a>> Turn<'_, P> {
    /// Replaces the process, which this thread runs.
    ///
    /// # Errors
    /// The reason for having no new process; the old process is unchanged, and ends next.
    pub(super) fn upgrade(&mut self, request: UpgradeRequest) -> Result<(), UpgradeError> {
        let UpgradeRequest {
            target,
            method,
            input,
        } = request;
        let (task, counters) = (self.task, self.counters);
        let is_restart = matches!(target, UpgradeTarget::Restart(..));
        let next = match self.create(target) {
            Ok(next) => next,
            Err(error) => {
                discard(task.pid(), counters, input);
                return Err(error);
            }
        };
        // The type stays known. The next `init` may say otherwise.
        task.accepts.keep();
        let next = self.init(next, method, input)?;
        if !is_restart {
            task.accepts.settle();
        }
        task.about.replace(next.namer());
        if let Some(old) = self.core.process.replace(ProcessBox::boxed(next)) {
            close(old, task, counters);
        }
        self.shared.forget_timers(&self.core.yields.take_tickets());
        self.core.forget_yields(task.pid(), counters);
        self.shared.probe.upgraded(task.pid());
        self.core.repeats = 1;
        self.core.has_warned = false;
        task.state.count_upgrade();
        counters.upgrades.bump();
        self.shared.tell_life(task, || match is_restart {
            true => LifeChange::Restarted,
            false => LifeChange::Upgraded,
        });
        log(
            Level::DEBUG,
            || tracing::debug!(target: "ganger::sched", pid = %task.pid(), %method, "upgraded"),
        );
        Ok(())
    }

    fn create(&mut self, target: UpgradeTarget) -> Result<Box<dyn Process>, UpgradeError> {
        match target {
            UpgradeTarget::Process(process) => Ok(process.into_inner()),
            UpgradeTarget::Restart(process, cause) => {
                self.end_incarnation(&cause);
                Ok(process.into_inner())
            }
            UpgradeTarget::Factory(name) => {
                let factory = self.shared.factories.get(name);
                let factory = factory.ok_or(UpgradeError::UnknownFactory(name))?;
                contain(|| factory()).map_err(|message| {
                    self.counters.panics.bump();
                    UpgradeError::FactoryPanicked(message)
                })
            }
            _ => unreachable!("an upgrade's target is a process or a factory"),
        }
    }

    /// Ends the incarnation of a failed process, whose place another takes: the incarnation's own
    /// registrations go as at its end. Registrations by other processes stay.
    fn end_incarnation(&mut self, cause: &ExitCause) {
        let (task, counters) = (self.task, self.counters);
        task.receive(self.core);
        let actions = self.core.take_of_incarnation(counters);
        task.origin.next_incarnation();
        failing::within(true, || run_all(actions, task.pid(), cause, counters));
        dropped::answer(|| CommandError::Ended(cause.clone()));
    }

    fn init(
        &self,
        mut next: Box<dyn Process>,
        method: Symbol,
        input: Payloads,
    ) -> Result<Box<dyn Process>, UpgradeError> {
        let ctx = LentContext::new(self.task);
        let error = match contain(|| next.init(&ctx, &method, input)) {
            Ok(Ok(())) => {
                self.shared.probe.initialised(self.task.pid());
                return Ok(next);
            }
            Ok(Err(error)) => UpgradeError::InitFailed(error),
            Err(message) => {
                self.counters.panics.bump();
                UpgradeError::InitPanicked(message)
            }
        };
        discard(self.task.pid(), self.counters, next);
        Err(error)
    }
}
