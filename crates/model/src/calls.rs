//! Calls, from outside or from a step, and their results.

use crate::actor::Actor;
use crate::notes::{Call, Finished, Heir, Number, Seen, Sent, Submitted, Upgraded};
use crate::plan::{Act, Answer, Manners, Nature, Next, Start, Target};
use crate::world::World;
use ganger_proc_api::{
    Completer, Context, Envelope, Pid, Process, SendError, SubmitError, Symbol, UpgradeRequest,
};
use ganger_sched::{Handle, ProcessHandle, UpgradeRefused, UpgradeRefusedKind};
use std::sync::Arc;

/// The name of a factory that makes processes.
pub(crate) const MAKER: &str = "makes processes";
/// The name of a factory that panics.
pub(crate) const BREAKER: &str = "panics";
/// The name of an unregistered factory.
const NOBODY: &str = "nobody";

/// The nature of processes that take the places of others.
const HEIRS: Nature = Nature {
    manners: Manners::Finishes,
    probes: true,
};

/// The names of entry points.
const METHODS: [(Start, &str); 5] = [
    (Start::Well, "goes well"),
    (Start::InitFails, "init fails"),
    (Start::InitPanics, "init panics"),
    (Start::Refused, "is refused"),
    (Start::HookPanics, "the hook panics"),
];

/// Returns the entry point for a start.
pub(crate) fn method_of(start: Start) -> Symbol {
    let found = METHODS.iter().find(|(other, _)| *other == start);
    found.map_or(Symbol::new(""), |&(_, name)| Symbol::new(name))
}

/// Returns the start of an entry point.
pub(crate) fn start_of(method: &str) -> Start {
    let found = METHODS.iter().find(|(_, name)| *name == method);
    found.map_or(Start::InitFails, |&(start, _)| start)
}

/// A submitted process: its PID, and its handle, if it is not detached.
pub(crate) type Submission = (Pid, Option<ProcessHandle>);

/// Returns the PID of a target.
pub(crate) fn aim(world: &World, to: Target) -> Option<Pid> {
    let state = world.state();
    let count = state.pids.len();
    (count > 0).then(|| state.pids[usize::from(to) % count])
}

/// Submits a process with `through`, which is given its input; returns its PID.
pub(crate) fn submit(
    world: &Arc<World>,
    nature: Nature,
    start: Start,
    chosen: Option<Pid>,
    by: Option<Pid>,
    through: impl FnOnce(Actor, Symbol, Number) -> Result<Submission, SubmitError>,
) {
    let number = world.number();
    let expected = world.ask(
        |answer| Call::Submit(number, start, answer),
        |spec| spec.submit(number, chosen, by, start),
    );
    let actor = Actor::new(world, number, nature);
    let found = match try_to_submit(world, actor, start, chosen, through) {
        Ok(submission) => {
            world.keep(submission);
            Submitted::Started
        }
        Err(refused) => refused,
    };
    let is_right = expected != Some(found) && world.was_refused(number, found);
    let expected = if is_right { Some(found) } else { expected };
    world.reach("a submit (P1, P13, P14, D1)", expected, found);
}

/// Submits a process with `through`. Checks that it has the requested PID, or comes back whole.
pub(crate) fn try_to_submit(
    world: &World,
    actor: Actor,
    start: Start,
    chosen: Option<Pid>,
    through: impl FnOnce(Actor, Symbol, Number) -> Result<Submission, SubmitError>,
) -> Result<Submission, Submitted> {
    let (number, life) = (actor.number(), actor.life());
    let error = match through(actor, method_of(start), number) {
        Ok(submission) => {
            let is_chosen = chosen.is_none_or(|chosen| chosen == submission.0);
            world.compare("the PID that was asked for (P1)", Some(true), is_chosen);
            return Ok(submission);
        }
        Err(error) => error,
    };
    let found = Submitted::refused(&error.kind);
    let is_lost = matches!(
        found,
        Submitted::InitPanicked | Submitted::StartRefused | Submitted::StartPanicked
    );
    let parts = error.into_parts();
    let comes_back = parts.is_some();
    world.compare("the process comes back (P1)", Some(!is_lost), comes_back);
    let has_input = found != Submitted::InitFailed;
    let input = parts
        .as_ref()
        .and_then(|(_, input)| input.first()?.as_u64());
    let expected = (comes_back && has_input).then_some(number);
    world.compare("the input that comes back (P1)", Some(expected), input);
    let lives = life.strong_count();
    drop(parts);
    world.compare(
        "the process that comes back is that one, and there is no other (P1)",
        Some((usize::from(comes_back), 0)),
        (lives, life.strong_count()),
    );
    if !matches!(
        found,
        Submitted::Stopping | Submitted::LimitReached | Submitted::AlreadyExists
    ) {
        world.tell("rolled back", |spec| spec.rolled_back(number));
    }
    Err(found)
}

/// Submits a process from outside.
pub(crate) fn submit_from_outside(
    world: &Arc<World>,
    handle: &Handle,
    nature: Nature,
    start: Start,
    chosen: Option<u64>,
) {
    let chosen = chosen.map(|id| world.pid(handle, id));
    submit(
        world,
        nature,
        start,
        chosen,
        None,
        |actor, method, input| submit_to(handle, chosen, actor, method, input),
    );
}

/// Submits a process to the scheduler, under a chosen PID if given.
pub(crate) fn submit_to(
    handle: &Handle,
    chosen: Option<Pid>,
    actor: Actor,
    method: Symbol,
    input: Number,
) -> Result<Submission, SubmitError> {
    let process = match chosen {
        Some(pid) => handle.submit_as(pid, actor, method, input),
        None => handle.submit(actor, method, input),
    }?;
    Ok((process.pid(), Some(process)))
}

/// Sends a message that makes its receiver do `act`.
pub(crate) fn send(
    world: &World,
    to: Pid,
    act: Act,
    is_control: bool,
    through: impl FnOnce(Envelope) -> Result<(), SendError>,
) {
    let number = world.number();
    world.state().acts.insert(number, act);
    let seen = if is_control {
        Seen::Control(number)
    } else {
        Seen::Message(number)
    };
    let expected = world.ask(
        |answer| Call::Send(to, seen, act, answer),
        |spec| spec.send(to, seen),
    );
    let envelope = Envelope::new(to, to, "act", number);
    let found = come_back(world, number, through(envelope));
    let expected = allow_for_a_stop(world, expected, found);
    world.reach("a send (R2, P13)", expected, found);
}

/// Returns the fate of message `number`. An error must have the message inside.
pub(crate) fn come_back(world: &World, number: Number, sent: Result<(), SendError>) -> Sent {
    let Err(error) = sent else {
        return Sent::Accepted;
    };
    let kind = error.kind;
    let back = number_in(&error.into_envelope());
    world.compare("the message that comes back (R2)", Some(Some(number)), back);
    Sent::refused(kind)
}

/// The number of the sent message.
pub(crate) fn number_in(envelope: &Envelope) -> Option<Number> {
    envelope.message.payloads.first()?.as_u64()
}

/// While a scheduler stops, the receiver may have ended, and the scheduler may have halted.
pub(crate) fn allow_for_a_stop(world: &World, expected: Option<Sent>, found: Sent) -> Option<Sent> {
    let may_be_stopping = world.state().spec.may_have_halted();
    match (expected, found) {
        (Some(Sent::NotFound | Sent::Closed), Sent::Stopping) if may_be_stopping => Some(found),
        (expected, _) => expected,
    }
}

/// Sends a message from outside.
pub(crate) fn send_from_outside(
    world: &World,
    handle: &Handle,
    to: Pid,
    act: Act,
    is_control: bool,
) {
    send(world, to, act, is_control, |envelope| {
        if is_control {
            handle.send_control(envelope)
        } else {
            handle.send(envelope)
        }
    });
}

/// Sends a message to a process that should not be there, or should not take any.
pub(crate) fn probe(world: &World, pid: Pid) {
    if let Some(handle) = world.handle() {
        send_from_outside(world, &handle, pid, Act::Note, false);
    }
}

pub(crate) fn cancel(world: &World, handle: &Handle, pid: Pid) {
    let number = world.number();
    let expected = world.ask(
        |answer| Call::Cancel(pid, number, answer),
        |spec| spec.cancel(pid, number),
    );
    let found = handle.cancel(pid, number.to_string()).is_ok();
    world.reach("a cancel (P10)", expected, found);
}

pub(crate) fn terminate(world: &World, handle: &Handle, pid: Pid) {
    let expected = world.ask(
        |answer| Call::Terminate(pid, answer),
        |spec| spec.terminate(pid),
    );
    let found = handle.terminate(pid).is_ok();
    world.reach("a termination (P9)", expected, found);
}

/// A process monitors another process or itself, under a tag of its own.
pub(crate) fn monitor(world: &World, ctx: &Context, target: Pid) -> Number {
    let tag = world.number();
    let watcher = ctx.pid();
    let expected = world.ask(
        |answer| Call::Monitor(target, tag, answer),
        |spec| spec.monitor(watcher, target, tag),
    );
    let found = ctx.monitor(target, tag).is_ok();
    world.compare("a monitor is accepted (P12)", Some(true), found);
    if let Some(is_there) = expected {
        world.come_to(if is_there {
            "a monitor of who is there"
        } else {
            "a monitor of nobody"
        });
    }
    tag
}

pub(crate) fn demonitor(world: &World, ctx: &Context, target: Pid, tag: Number) {
    world.ask(
        |_| Call::Demonitor(target, tag),
        |spec| spec.demonitor(target, tag),
    );
    ctx.demonitor(target, tag);
}

/// Returns the heir of a process, and the request for the upgrade.
pub(crate) fn heir(world: &Arc<World>, next: Next) -> (Heir, UpgradeRequest) {
    let factory = |name| UpgradeRequest::factory(world.factory(name), method_of(Start::Well), ());
    match next {
        Next::Process(start) => {
            let number = world.number();
            let actor = Actor::new(world, number, HEIRS);
            let request = UpgradeRequest::process(actor, method_of(start), ());
            (Heir::Process(number), request)
        }
        Next::Factory => (Heir::Made, factory(MAKER)),
        Next::PanickingFactory => (Heir::PanickingFactory, factory(BREAKER)),
        Next::UnknownFactory => (Heir::UnknownFactory, factory(NOBODY)),
    }
}

/// Makes a process, as a factory.
pub(crate) fn make(world: &Arc<World>) -> Box<dyn Process> {
    let number = world.number();
    world.state().spec.made(number);
    Box::new(Actor::new(world, number, HEIRS))
}

pub(crate) fn upgrade(world: &Arc<World>, handle: &Handle, pid: Pid, next: Next) {
    let (heir, request) = heir(world, next);
    let expected = world.ask(
        |answer| Call::Upgrade(pid, heir, answer),
        |spec| spec.upgrade(pid, heir),
    );
    let found = match handle.upgrade(pid, request) {
        Ok(()) => Upgraded::Accepted,
        Err(UpgradeRefused { kind, .. }) => match kind {
            UpgradeRefusedKind::UnknownFactory(_) => Upgraded::UnknownFactory,
            _ => Upgraded::NotFound,
        },
    };
    world.reach("an upgrade (P11)", expected, found);
}

/// Uses a kept completer.
pub(crate) fn complete_kept(world: &World, nth: usize, answer: Answer) {
    let mut state = world.state();
    let count = state.kept.len();
    if count == 0 {
        return;
    }
    let (number, completer) = state.kept.swap_remove(nth % count);
    drop(state);
    complete(world, number, completer, answer);
}

/// Uses a completer.
pub(crate) fn complete(world: &World, number: Number, completer: Completer, answer: Answer) {
    let how = match answer {
        Answer::Result => Finished::Result,
        Answer::Error => Finished::Failed,
        Answer::Dropped => Finished::Dropped,
    };
    world.ask(
        |_| Call::Complete(number, how),
        |spec| spec.complete(number, how),
    );
    match answer {
        Answer::Result => completer.complete(number),
        Answer::Error => completer.fail(number.to_string()),
        Answer::Dropped => drop(completer),
    }
}
