//! Handlers and factories with which something may go wrong, and what others do.

use crate::faults::LATE;
use crate::rt::Rt;
use crate::timers::SimClock;
use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, Handler, Process, Symbol, UpgradeRequest,
};
use ganger_sched::sim;
use ganger_sched::{FactoryError, RegisterError};
use std::time::Duration;

impl Rt<'_> {
    /// Registers a handler, as [`Handle::register`](ganger_sched::Handle::register), with which something may
    /// go wrong: see [`Faults`](crate::Faults).
    ///
    /// # Errors
    /// [`RegisterError`] when the id is taken, or something has moved already.
    pub fn register(
        &self,
        id: impl Into<CommandId>,
        name: impl Into<Symbol>,
        handler: impl Handler,
    ) -> Result<(), RegisterError> {
        let clock = self.clock();
        let faulty = move |command: Command, completer: Completer| -> Result<(), BoxError> {
            if sim::happens("handler drops") {
                return Ok(());
            }
            if sim::happens("handler fails") {
                return Err("a fault of the simulation: the command fails".into());
            }
            if sim::happens("handler answers twice") {
                handler.handle(command, later(&clock, completer))?;
                return Err("a fault of the simulation: the command fails, and is answered".into());
            }
            if sim::happens("handler is late") {
                return handler.handle(command, later(&clock, completer));
            }
            handler.handle(command, completer)
        };
        self.handle().register(id, name, faulty)
    }

    /// Registers a way to create processes, as
    /// [`Handle::register_factory`](ganger_sched::Handle::register_factory): any process may be upgraded to one
    /// of these at any time, with that method, and the factory may panic: see [`Faults`](crate::Faults).
    ///
    /// # Errors
    /// [`FactoryError`], when the name is taken.
    pub fn register_upgrade(
        &self,
        name: impl Into<Symbol>,
        method: impl Into<Symbol>,
        factory: impl Fn() -> Box<dyn Process> + Send + Sync + 'static,
    ) -> Result<(), FactoryError> {
        let (name, method) = (name.into(), method.into());
        self.handle().register_factory(name, move || {
            panic_at_times();
            factory()
        })?;
        sim::offer_upgrade(move || UpgradeRequest::factory(name, method, ()));
        Ok(())
    }

    /// Registers what another thread does while the scheduler works: it is done at any
    /// [moment](crate::Faults#moments), again and again, as often as [`Faults::others_act`](crate::Faults) says.
    /// What several senders send in this way arrives in the middle of moves.
    ///
    /// It is dropped when the run is over.
    pub fn meanwhile(&self, act: impl Fn() + 'static) {
        sim::offer_act(act);
    }
}

fn panic_at_times() {
    assert!(
        !sim::happens("upgrade fails"),
        "a fault of the simulation: the factory panics"
    );
}

/// A completer whose answer comes some time later.
fn later(clock: &SimClock, completer: Completer) -> Completer {
    let Some(pid) = completer.pid() else {
        return completer;
    };
    let micros = usize::try_from(LATE.as_micros()).unwrap_or(usize::MAX);
    let delay = Duration::from_micros(sim::pick(micros) as u64);
    let clock = clock.clone();
    Completer::from_fn(pid, completer.tag(), move |completion| {
        clock.after(delay, move || completer.finish(completion.result));
    })
}
