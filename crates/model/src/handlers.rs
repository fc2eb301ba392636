//! The handlers of commands, the factories of processes, and the hooks of starts and ends.

use crate::actor::{BREAKER, MAKER, make};
use crate::calls::{self, id_of, panic_with};
use crate::notes::{End, Note};
use crate::plan::{Answer, KINDS, Kind, Start};
use crate::world::{Hub, World};
use ganger_proc_api::{BoxError, Command, Completer, ExitReason, Lifecycle, Pid, Symbol};
use ganger_sched::{FactoryError, Handle, RegisterError};
use std::sync::Arc;
use std::time::Duration;

/// How long it takes to answer later.
const LATER: Duration = Duration::from_micros(20);

pub(crate) fn register(hub: &Arc<Hub>, handle: &Handle) -> Result<(), RegisterError> {
    for kind in KINDS.into_iter().filter(|&kind| kind != Kind::Unknown) {
        let hub = Arc::clone(hub);
        handle.register(id_of(kind), "of that kind", move |command, completer| {
            carry_out(&hub, kind, &command, completer)
        })?;
    }
    Ok(())
}

fn carry_out(
    hub: &Hub,
    kind: Kind,
    command: &Command,
    completer: Completer,
) -> Result<(), BoxError> {
    let found = completer.pid().and_then(|pid| hub.find(pid));
    let (world, _) = found.ok_or("a command of nobody")?;
    let number = completer.tag();
    let inside = command.payloads.first().and_then(|it| it.as_u64());
    world.compare("what a handler is given (P6)", Some(Some(number)), inside);
    world.note(Note::Handled(number));
    match kind {
        Kind::AtOnce => completer.complete(number),
        Kind::Terminates => {
            if let (Some(handle), Some(pid)) = (hub.handle(), completer.pid()) {
                calls::terminate(&world, &handle, pid);
            }
            completer.complete(number);
        }
        Kind::Kept => world.state().kept.push((number, completer)),
        Kind::Delayed => match hub.clock() {
            Some(clock) => {
                let world = Arc::clone(&world);
                clock.after(LATER, move || {
                    calls::complete(&world, number, completer, Answer::Result);
                });
            }
            None => world.state().kept.push((number, completer)),
        },
        Kind::Drops | Kind::Unknown => drop(completer),
        Kind::Errs => return Err(number.to_string().into()),
        Kind::Panics => panic_with(number),
        Kind::AnswersAndErrs => {
            completer.complete(number);
            return Err(number.to_string().into());
        }
    }
    Ok(())
}

/// Registers the factories of a world, under names of its own.
pub(crate) fn register_factories(world: &Arc<World>, handle: &Handle) -> Result<(), FactoryError> {
    let maker = Arc::downgrade(world);
    let make = move || match maker.upgrade() {
        Some(world) => make(&world),
        None => panic_with(0),
    };
    handle.register_factory(world.factory(MAKER), make)?;
    handle.register_factory(world.factory(BREAKER), || panic_with(0))
}

/// The hooks of a scheduler, which tell its worlds of starts and ends.
pub(crate) struct Hooks(pub(crate) Arc<Hub>);

impl Lifecycle for Hooks {
    fn on_start(&self, pid: Pid, method: Symbol) -> Result<(), BoxError> {
        let Self(hub) = self;
        let (world, nature) = hub.find(pid).ok_or("a start of nobody")?;
        world.note(Note::Started(pid));
        if nature.probes {
            calls::probe(&world, pid);
        }
        let start = calls::start_of(&method);
        world.tell("the hook returns", |spec| spec.hook_returns(pid, start));
        match start {
            Start::Refused => Err("refused".into()),
            Start::HookPanics => panic_with(0),
            Start::Well | Start::InitFails | Start::InitPanics => Ok(()),
        }
    }

    fn on_complete(&self, pid: Pid, reason: &ExitReason) {
        let Self(hub) = self;
        let Some((world, nature)) = hub.find(pid) else {
            return;
        };
        world.note(Note::Ended(pid, End::of(reason)));
        // On threads, the world waits for the noted end: it goes on before this hook has returned.
        if nature.probes && hub.clock().is_some() {
            calls::probe(&world, pid);
        }
    }
}
