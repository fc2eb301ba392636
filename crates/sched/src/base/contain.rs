//! Calling users' code: a panic in it ends the call and nothing else.
//!
//! A destructor is user code as well: of payloads, results, errors, processes and wakers.
//! [`discard`] drops a value with a possible destructor of a user, one value at a time. A second
//! panic while the first unwinds would end the program.

use crate::base::stats::Counters;
use ganger_proc_api::Pid;
use ganger_sync::{discard_panic, panic_text};
use std::any::Any;
use std::error::Error;
use std::fmt::{Display, Write};
use std::io::{self, Write as _};
use std::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracing::Level;
use tracing::level_filters::LevelFilter;

/// How many causes of an error are shown.
const CAUSES: usize = 16;

/// Calls `f`; a panic becomes its message.
///
/// Data borrowed by `f` may be half-changed after a panic: callers throw it away.
#[inline]
pub(crate) fn contain<R>(f: impl FnOnce() -> R) -> Result<R, Box<str>> {
    catch_unwind(AssertUnwindSafe(f)).map_err(message)
}

/// Calls `f`, and ends the program when it panics: a worker's search for work, or the monitor's
/// watch, which call no user code.
///
/// Otherwise the worker's thread would be gone, with the processes in its deque. The worker would
/// count as searching for ever, and no other worker would be woken. The program would stand still
/// in silence. The only known cause is a filter for system calls against `membarrier`, installed
/// after the scheduler's start.
#[inline(always)]
pub(crate) fn or_abort<R>(f: impl FnOnce() -> R) -> R {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            // Not by a macro: the output of a test would be caught, and go with the program.
            let message =
                "ganger: a thread of the scheduler cannot go on after the panic above; aborting";
            let _told = writeln!(io::stderr(), "{message}");
            std::process::abort();
        }
    }
    let bomb = Bomb;
    let result = f();
    mem::forget(bomb);
    result
}

/// Calls `f`, which is not expected to panic; counts and reports a panic. `what` names the call,
/// and `pid` its process, where known.
#[inline]
pub(crate) fn contain_and_report(
    what: &'static str,
    pid: impl Into<Option<Pid>>,
    counters: &Counters,
    f: impl FnOnce(),
) {
    if let Err(message) = contain(f) {
        counters.panics.bump();
        report(what, pid.into(), &message);
    }
}

#[cold]
fn report(what: &'static str, pid: Option<Pid>, message: &str) {
    log(Level::ERROR, || {
        let pid = pid.map(tracing::field::display);
        tracing::error!(target: "ganger::sched", pid, what, reason = message, "contained a panic");
    });
}

/// Emits a `tracing` event of the level: the subscriber is user code as well. Without a listener,
/// this is a load or two.
#[inline]
pub(crate) fn log(level: Level, event: impl FnOnce()) {
    if is_heard(level) {
        let _ = contain(event);
    }
}

/// Returns whether a subscriber may listen to events of the level.
pub(crate) fn is_heard(level: Level) -> bool {
    // Without a subscriber, events may go to the crate `log`, by `tracing`'s decision.
    level <= LevelFilter::current() || !tracing::dispatcher::has_been_set()
}

/// Drops a value of the process with a possible destructor of a user.
pub(crate) fn discard<T>(pid: impl Into<Option<Pid>>, counters: &Counters, value: T) {
    // In place: a move of the value just after it was written would wait for the stores.
    let mut value = ManuallyDrop::new(value);
    // SAFETY: it is not used again.
    unsafe { discard_in_place(pid, counters, &mut value) };
}

/// Discards a value as [`discard`] does, where a move of the value would wait for its stores.
///
/// # Safety
/// The value is not used again.
pub(crate) unsafe fn discard_in_place<T>(
    pid: impl Into<Option<Pid>>,
    counters: &Counters,
    value: &mut ManuallyDrop<T>,
) {
    contain_and_report("destructor", pid, counters, || {
        // SAFETY: the contract of this function.
        unsafe { ManuallyDrop::drop(value) };
    });
}

/// Drops values with possible destructors of users.
pub(crate) fn discard_each<T>(
    pid: impl Into<Option<Pid>>,
    counters: &Counters,
    values: impl IntoIterator<Item = T>,
) {
    let pid = pid.into();
    for value in values {
        discard(pid, counters, value);
    }
}

/// Returns the text of a user's error and of its causes.
pub(crate) fn text_of_chain(error: &(dyn Error + 'static)) -> Box<str> {
    let mut text = String::from(text_of(error));
    let mut next = contain(|| error.source()).ok().flatten();
    for _ in 0..CAUSES {
        let Some(cause) = next else { break };
        let _ = write!(text, ": {}", text_of(cause));
        next = contain(|| cause.source()).ok().flatten();
    }
    text.into()
}

/// Returns the text of a user's error.
pub(crate) fn text_of(error: &dyn Display) -> Box<str> {
    contain(|| error.to_string().into()).unwrap_or_else(|_| "an error that can't be shown".into())
}

/// Returns the advice for a panic of foreign code with this message, if the scheduler has any.
pub(crate) fn remedy(message: &str) -> Option<&'static str> {
    let needs_tokio = ["no reactor running", "no timer running"];
    needs_tokio.iter().any(|it| message.contains(it)).then_some(
        "tokio's code needs tokio's runtime: build the scheduler with `.driver(Tokio::new()?)`, \
         from `ganger::tokio`",
    )
}

fn message(payload: Box<dyn Any + Send>) -> Box<str> {
    let message = panic_text(&*payload).unwrap_or("non-string panic payload");
    let message = match remedy(message) {
        Some(remedy) => format!("{message}; {remedy}").into(),
        None => message.into(),
    };
    discard_panic(payload);
    message
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    // pins: P8
    #[test]
    fn every_kind_of_panic_becomes_a_message() {
        assert_eq!(contain(|| 7), Ok(7));
        assert_eq!(contain(|| panic!("static")), Err::<(), _>("static".into()));
        assert_eq!(
            contain(|| panic!("number {}", 7)),
            Err::<(), _>("number 7".into())
        );
        let odd = contain(|| std::panic::panic_any(Bomb));
        assert_eq!(odd, Err::<(), _>("non-string panic payload".into()));
    }

    // pins: P8
    #[test]
    fn each_destructor_that_panics_is_counted() {
        let counters = Counters::new(true);
        discard_each(None, &counters, vec![Bomb, Bomb, Bomb]);
        assert_eq!(counters.read().panics, 3);
    }
}
