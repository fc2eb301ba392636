//! Calls of processes that are there, from outside or from a step, and their results.

use crate::notes::{Call, Finished, Number, Seen, Sent};
use crate::plan::{Act, Answer, Kind, Start, Target};
use crate::world::World;
use ganger_proc_api::{CommandId, Completer, Context, Envelope, Pid, SendError, Symbol};
use ganger_sched::Handle;
use std::panic::resume_unwind;

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

/// Returns the command id of each kind: ids in the array and in the map of the registry, and at
/// their ends.
pub(crate) fn id_of(kind: Kind) -> CommandId {
    CommandId::new(match kind {
        Kind::AtOnce => 256,
        Kind::Kept => 257,
        Kind::Delayed => 511,
        Kind::Drops => 512,
        Kind::Errs => 32_767,
        Kind::Panics => 258,
        Kind::AnswersAndErrs => 20_000,
        Kind::Unknown => 301,
        Kind::Terminates => 259,
    })
}

/// Panics without output: only the message counts.
pub(crate) fn panic_with(number: Number) -> ! {
    resume_unwind(Box::new(number.to_string()))
}

/// Returns the PID of a target.
pub(crate) fn aim(world: &World, to: Target) -> Option<Pid> {
    let state = world.state();
    let count = state.pids.len();
    (count > 0).then(|| state.pids[usize::from(to) % count])
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

/// Returns the number of the sent message.
pub(crate) fn number_in(envelope: &Envelope) -> Option<Number> {
    envelope.message.payloads.first()?.as_u64()
}

/// Allows for a stop: the receiver may have ended, and the scheduler may have halted.
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

/// Monitors another process or the process itself, under a tag of its own.
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
