//! The watchdog: a thread that notices when nothing moves, reports the state of all schedulers and
//! threads, and ends the program.
//!
//! No other thread could: a thread that waits for a lost wake-up waits for ever, in silence. The
//! watchdog looks several times within its patience (`patience.rs`), and only at counts. It shows
//! the live line as well, because a round may take long.

use crate::patience::{Limits, Patience, Verdict};
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
use crate::threads;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
use crate::threads_off as threads;
use crate::watch::Watch;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time between the two reports on a round that moves and does not end.
const BETWEEN_REPORTS: Duration = Duration::from_secs(1);

/// The thread, which ends when the watchdog is dropped.
pub(crate) struct Watchdog {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts to watch. Calls `tick` at each look, with how long nothing has moved. Calls `bark`
    /// once, with the report, when a limit has passed.
    pub(crate) fn start(
        watch: &Arc<Watch>,
        limits: Limits,
        tick: impl Fn(Duration) + Send + 'static,
        bark: impl FnOnce(String) + Send + 'static,
    ) -> Self {
        let (end, ended) = channel::<()>();
        let watch = Arc::clone(watch);
        let interval = limits.interval();
        let look = move || {
            let mut patience = Patience::new(limits, Instant::now(), watch.progress());
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let verdict = patience.look(Instant::now(), watch.progress());
                tick(patience.still());
                match verdict {
                    Verdict::GoesOn => {}
                    Verdict::Stands(still) => return bark(standstill(&watch, still)),
                    Verdict::Lasts(lasts) => return bark(endless(&watch, lasts)),
                }
            }
        };
        let thread = thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(look);
        Self {
            end: Some(end),
            thread: thread.ok(),
        }
    }

    /// Returns whether the system has granted the watchdog a thread.
    pub(crate) fn is_there(&self) -> bool {
        self.thread.is_some()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported when it happened.
            let _ended = thread.join();
        }
    }
}

fn standstill(watch: &Watch, still: Duration) -> String {
    let seconds = still.as_secs_f64();
    let (report, threads) = (watch.report(), threads::report());
    format!(
        "nothing has moved for {seconds:.1} s: no worker has begun a turn, and no step has \
             returned\n\
         {report}{threads}"
    )
}

fn endless(watch: &Watch, lasts: Duration) -> String {
    let seconds = lasts.as_secs_f64();
    let first = watch.report();
    thread::sleep(BETWEEN_REPORTS);
    let (second, threads) = (watch.report(), threads::report());
    format!(
        "the round does not end: {seconds:.1} s\n{first}\n{BETWEEN_REPORTS:?} later\n\
             {second}{threads}"
    )
}
