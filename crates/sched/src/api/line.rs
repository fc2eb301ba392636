//! The thread that writes one line a period, at the request of the builder or the environment.
//!
//! The thread wakes once a period; without a period no thread is started. The thread keeps no
//! `Handle` while it waits, and ends when the scheduler halts or is gone.

use super::handle::Handle;
use super::internals::HandleInternals as _;
use crate::reports::line::{Line, Sample, period};
use std::env;
use std::io::{self, Write as _};
use std::sync::{Arc, Condvar, Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

/// The period, in the environment of the program.
const VARIABLE: &str = "GANGER_REPORT";

/// Whether the scheduler has halted.
#[derive(Default)]
struct Halted {
    is_so: Mutex<bool>,
    changed: Condvar,
}

impl Halted {
    fn set(&self) {
        *self.is_so.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for a period; returns whether the scheduler has halted.
    fn wait(&self, period: Duration) -> bool {
        let is_so = self.is_so.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_so, period, |it| !*it);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Starts the thread, if there is a period: the builder's, or else the environment's. Reports when
/// the system refuses the thread, and continues without a line.
pub(super) fn start(handle: &Handle) {
    let asked = handle.shared.config.report_every;
    let period = asked.or_else(of_environment).unwrap_or_default();
    if period.is_zero() {
        return;
    }
    let halted = Arc::<Halted>::default();
    let (seen, weak) = (Arc::clone(&halted), handle.downgrade());
    let mut before = sample(handle);
    let body = move || {
        while !seen.wait(period) {
            let Some(handle) = weak.upgrade() else { return };
            let now = sample(&handle);
            let host = handle.host_name();
            write(&Line {
                host: host.as_str(),
                before: &before,
                now: &now,
            });
            before = now;
        }
    };
    let name = format!("{}-report", handle.shared.config.thread_name);
    match thread::Builder::new().name(name).spawn(body) {
        Ok(_runs_until_the_halt) => handle.at_halt(move || halted.set()),
        Err(error) => write(format!("ganger: no line a period: no thread: {error}")),
    }
}

fn sample(handle: &Handle) -> Sample {
    Sample {
        at: handle.now(),
        stats: handle.stats(),
        workers: handle.worker_stats(),
        timers: handle.timers().stats(),
    }
}

/// Returns the environment's period. A wrong value is reported once.
fn of_environment() -> Option<Duration> {
    static REPORTED: Once = Once::new();
    let text = env::var_os(VARIABLE)?;
    let found = text.to_str().and_then(period);
    if found.is_none() {
        REPORTED.call_once(|| {
            write(format!(
                "ganger: {VARIABLE}={text:?} is not a period, and is ignored: write 1s, 500ms or 1m"
            ));
        });
    }
    found
}

/// Writes a line; a closed stream is the program's choice.
fn write(line: impl ToString) {
    let mut line = line.to_string();
    line.push('\n');
    let _told = io::stderr().write_all(line.as_bytes());
}
