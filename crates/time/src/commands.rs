//! The commands with timers, which yields ask for.

use crate::shards::Shards;
use crate::within;
use ganger_proc_api::{BoxError, Command, CommandId, Completer, Handler, Instant, Payload};
use std::sync::Arc;
use std::time::Duration;

/// The period of an interval is zero: it would tick without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid period: an interval's period must be at least 1 ns")]
pub struct ZeroPeriod;

/// The ids of the timers' commands, and their names for people.
pub const COMMANDS: [(CommandId, &str); 4] = [
    (CommandId::SLEEP, "sleep"),
    (CommandId::TIMER, "timer"),
    (CommandId::TICKER, "ticker"),
    (CommandId::ASK_WITHIN, "ask within"),
];

/// Gives the moment when a yield completes, and the present. `None` for a command that does not
/// complete at a moment, or has wrong values; the error comes from its [handler](Commands).
#[must_use]
#[inline]
pub fn due(command: &Command, now: impl FnOnce() -> Instant) -> Option<(Instant, Instant)> {
    if !(CommandId::SLEEP..=CommandId::TICKER).contains(&command.id) {
        return None;
    }
    // With more values the handler takes the command: the caller drops this command outside of a
    // containment, and the destructor of an unexpected value may panic.
    let values = if command.id == CommandId::TICKER {
        2
    } else {
        1
    };
    if command.payloads.len() != values {
        return None;
    }
    let nanos = command.payloads.first()?.as_u64()?;
    let now = now();
    match command.id {
        CommandId::SLEEP => Some((now, now.after(Duration::from_nanos(nanos)))),
        CommandId::TICKER if command.payloads.get(1)?.as_u64()? == 0 => None,
        _ => Some((now, Instant::from_nanos(nanos))),
    }
}

/// Carries the commands out.
pub struct Commands(Arc<Shards>);

impl Commands {
    /// Creates the commands of these timers.
    #[must_use]
    pub fn new(shards: Arc<Shards>) -> Self {
        Self(shards)
    }
}

impl Handler for Commands {
    fn handle(&self, command: Command, completer: Completer) -> Result<(), BoxError> {
        let shards = &self.0;
        let mut payloads = command.payloads.into_iter();
        let nanos = number(payloads.next())?;
        let at = match command.id {
            CommandId::SLEEP => shards.now().after(Duration::from_nanos(nanos)),
            CommandId::TICKER if number(payloads.next())? == 0 => return Err(ZeroPeriod.into()),
            CommandId::ASK_WITHIN => {
                let command: Command = payloads.next().ok_or(NO_COMMAND)?.take()?;
                within::ask(shards, command, Duration::from_nanos(nanos), completer);
                return Ok(());
            }
            _ => Instant::from_nanos(nanos),
        };
        shards.complete_at(at, completer);
        Ok(())
    }
}

const NO_COMMAND: &str = "the second payload must be a command";

fn number(payload: Option<Payload>) -> Result<u64, BoxError> {
    let number = payload.and_then(|it| it.as_u64());
    number.ok_or_else(|| "the payload must be a number of nanoseconds as u64".into())
}
