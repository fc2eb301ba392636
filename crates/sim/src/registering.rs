//! Handlers and factories that may fail, and acts from outside of the scheduler.

use crate::faults::LATE;
use crate::rt::Rt;
use crate::timers::SimClock;
use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, Handler, Process, Reply, Symbol, TypedCommand,
    UpgradeRequest, typed_handler,
};
use ganger_sched::internal::sim;
use ganger_sched::{FactoryError, RegisterError};
use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

impl Rt<'_> {
    /// Registers a handler like [`Handle::register`](ganger_sched::Handle::register); the handler
    /// may fail, as [`Faults`](crate::Faults) says.
    ///
    /// # Errors
    /// [`RegisterError`] when the id is taken, or something has moved already.
    pub fn register(
        &self,
        id: impl Into<CommandId>,
        name: impl Into<Symbol>,
        handler: impl Handler,
    ) -> Result<(), RegisterError> {
        let name = name.into();
        let faulty = self.faulty(name, handler);
        (**self).register(id, name, faulty)
    }

    /// Registers a handler of a typed command like
    /// [`Handle::register_for`](ganger_sched::Handle::register_for); the handler may fail, as
    /// [`Faults`](crate::Faults) says.
    ///
    /// # Errors
    /// [`RegisterError`] when the type has a handler, or something has moved already.
    pub fn register_for<C: TypedCommand>(
        &self,
        handle: impl Fn(C, Reply<C::Answer>) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        let name = Symbol::intern(&sim::short(type_name::<C>()));
        let name = name.unwrap_or(Symbol::new("a command"));
        let faulty = self.faulty(name, typed_handler(handle));
        (**self).commands().register_for::<C>(Arc::new(faulty))
    }

    /// Shows messages of type `M` in traces and reports by the first word of their `Debug`, the
    /// variant of an enum. Other messages are shown by their type. Call it at the beginning of the
    /// test, once for each type.
    ///
    /// ```
    /// use ganger_proc_api::actor_fn;
    /// use ganger_sim::Sim;
    ///
    /// #[derive(Debug)]
    /// enum Door {
    ///     Open,
    ///     Close,
    /// }
    ///
    /// let report = Sim::new(0).run(|rt| {
    ///     rt.show::<Door>();
    ///     let door = rt.spawn(actor_fn(|_, _: Door, _| Ok(()))).unwrap();
    ///     door.send(Door::Open).unwrap();
    ///     door.send(Door::Close).unwrap();
    ///     rt.settle();
    /// });
    /// assert!(report.trace.to_string().contains("2 messages: Open, Close"));
    /// ```
    pub fn show<M: Any + Sync + fmt::Debug>(&self) {
        sim::show::<M>();
    }

    fn faulty<H: Handler>(&self, name: Symbol, handler: H) -> impl Handler + use<H> {
        let clock = self.clock();
        move |command: Command, completer: Completer| -> Result<(), BoxError> {
            let tell = |what: &str| {
                let to = whose(&completer);
                sim::tell(format!("fault: {name} of {to}: {what}"));
            };
            if sim::happens("handler drops") {
                tell("its completer is dropped");
                return Ok(());
            }
            if sim::happens("handler fails") {
                tell("it fails");
                return Err("a fault of the simulation: the command fails".into());
            }
            if sim::happens("handler answers twice") {
                tell("it fails, and is answered as well");
                handler.handle(command, later(&clock, name, completer))?;
                return Err("a fault of the simulation: the command fails, and is answered".into());
            }
            if sim::happens("handler is late") {
                return handler.handle(command, later(&clock, name, completer));
            }
            handler.handle(command, completer)
        }
    }

    /// Registers a factory like
    /// [`Handle::register_factory`](ganger_sched::Handle::register_factory).
    ///
    /// Any process may be upgraded at any time to a process of this factory, with this method, and
    /// the factory may panic: see [`Faults`](crate::Faults).
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
        (**self).register_factory(name, move || {
            panic_at_times();
            factory()
        })?;
        self.seat
            .machine
            .offer_upgrade(move || UpgradeRequest::factory(name, method, ()));
        Ok(())
    }

    /// Registers an act of another thread: the simulation calls `act` at any
    /// [moment](crate::Faults#moments), again and again, at the rate of
    /// [`Faults::others_act`](crate::Faults). Its messages arrive in the middle of moves.
    ///
    /// `act` is dropped when the run is over.
    pub fn meanwhile(&self, act: impl Fn() + 'static) {
        self.seat.machine.offer_act(act);
    }
}

fn panic_at_times() {
    if sim::happens("upgrade fails") {
        sim::tell("fault: the factory panics");
        panic!("a fault of the simulation: the factory panics");
    }
}

/// Creates a completer for the handler `name`, whose answer comes some time later.
fn later(clock: &SimClock, name: Symbol, completer: Completer) -> Completer {
    let Some(pid) = completer.pid() else {
        return completer;
    };
    let micros = usize::try_from(LATE.as_micros()).unwrap_or(usize::MAX);
    let delay = Duration::from_micros(sim::pick(micros) as u64);
    let clock = clock.clone();
    let to = whose(&completer);
    Completer::from_fn(pid, completer.tag(), move |completion| {
        sim::tell(format!(
            "fault: the answer of {name} to {to}, comes {delay:?} late"
        ));
        clock.after(delay, move || {
            sim::tell(format!("the late answer of {name} to {to}"));
            completer.finish(completion.result);
        });
    })
}

/// Returns the process of a command, and the command's tag.
fn whose(completer: &Completer) -> String {
    let tag = completer.tag();
    match completer.pid() {
        Some(pid) => format!("{}, tag {}", sim::describe(pid), sim::tag(pid, tag)),
        None => format!("another thread, tag {tag}"),
    }
}
