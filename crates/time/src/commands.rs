//! The commands: what a yield asks for.

use crate::timers::Inner;
use crate::within;
use ganger_proc_api::{BoxError, Command, CommandId, Completer, Completion, Handler, Payloads};
use ganger_sched::{CommandRegistry, Instant};
use std::sync::Arc;
use std::time::Duration;

/// Completes after so many nanoseconds, the first payload. `u64::MAX` is never.
pub const SLEEP: CommandId = CommandId::SLEEP;

/// Completes at a moment: so many nanoseconds on the scheduler's clock ([`Instant`]).
pub const TIMER: CommandId = CommandId::new(11);

/// As [`TIMER`]; the second payload is the period, in nanoseconds. A period of zero is an error.
pub const TICKER: CommandId = CommandId::new(12);

/// Has the command in the second payload carried out, and fails with
/// [`CommandError::Timeout`](ganger_proc_api::CommandError::Timeout) after so many nanoseconds, the
/// first payload.
pub const ASK_WITHIN: CommandId = CommandId::new(13);

/// The period of an interval is zero: it would tick without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid period: an interval's period must be at least 1 ns")]
pub struct ZeroPeriod;

/// The completion of a timer, which is no timeout if the timer has failed.
///
/// # Panics
/// With the error, when it has: a scheduler without timers is no scheduler for this process.
#[track_caller]
pub(crate) fn expect_time(completion: &Completion) {
    if let Err(error) = &completion.result {
        panic!("a timer has failed: {error}");
    }
}

/// The handlers, with their ids and names.
pub(crate) fn register(registry: &CommandRegistry, timers: &Arc<Inner>) {
    add(registry, timers, SLEEP, "sleep", |timers, payloads| {
        let nanos = number(payloads.next())?;
        Ok(timers.now().after(Duration::from_nanos(nanos)))
    });
    add(registry, timers, TIMER, "timer", |_, payloads| {
        Ok(Instant::from_nanos(number(payloads.next())?))
    });
    add(registry, timers, TICKER, "ticker", |_, payloads| {
        let at = Instant::from_nanos(number(payloads.next())?);
        match number(payloads.next())? {
            0 => Err(ZeroPeriod.into()),
            _ => Ok(at),
        }
    });
    let timers = Arc::clone(timers);
    let ask_within = move |command: Command, completer: Completer| {
        let mut payloads = command.payloads.into_iter();
        let nanos = number(payloads.next())?;
        let command: Command = payloads.next().ok_or(NO_COMMAND)?.take()?;
        within::ask(&timers, command, Duration::from_nanos(nanos), completer);
        Ok(())
    };
    register_as(registry, ASK_WITHIN, "ask within", Arc::new(ask_within));
}

const NO_COMMAND: &str = "the second payload must be a command";

fn register_as(
    registry: &CommandRegistry,
    id: CommandId,
    name: &'static str,
    handler: Arc<dyn Handler>,
) {
    if let Err(error) = registry.register_any(id, name, handler) {
        panic!("the ids of timers are Ganger's own: {error}");
    }
}

type Arguments = <Payloads as IntoIterator>::IntoIter;

fn number(payload: Option<ganger_proc_api::Payload>) -> Result<u64, BoxError> {
    let number = payload.and_then(|it| it.as_u64());
    number.ok_or_else(|| "the payload must be a number of nanoseconds as u64".into())
}

/// Registers a handler that completes its yield at the moment that `when` works out.
fn add(
    registry: &CommandRegistry,
    timers: &Arc<Inner>,
    id: CommandId,
    name: &'static str,
    when: impl Fn(&Inner, &mut Arguments) -> Result<Instant, BoxError> + Send + Sync + 'static,
) {
    let timers = Arc::clone(timers);
    let handler = move |command: Command, completer: Completer| {
        let at = when(&timers, &mut command.payloads.into_iter())?;
        timers.complete_at(at, completer);
        Ok(())
    };
    register_as(registry, id, name, Arc::new(handler));
}
