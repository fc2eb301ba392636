//! The watchdog: a thread that sees when nothing moves, tells everything that can be known, and ends the
//! program.
//!
//! Nobody else could: whoever waits for a wake-up that is lost waits for ever, and says nothing. It looks
//! several times within its patience (`patience.rs`), and only at counts. It shows the live line as well, because a round may
//! take its time.

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

/// Between two reports of what moves, and does not come to an end.
const BETWEEN_REPORTS: Duration = Duration::from_secs(1);

/// The thread. It ends when this is dropped.
pub(crate) struct Watchdog {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts to watch. Calls `tick` at each look, with how long nothing has moved, and `bark` once, with
    /// what is to be told when a limit has passed.
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

    /// Whether the system has granted it a thread.
    pub(crate) fn is_there(&self) -> bool {
        self.thread.is_some()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // Its panic has been reported when it happened.
            let _ended = thread.join();
        }
    }
}

fn standstill(watch: &Watch, still: Duration) -> String {
    let seconds = still.as_secs_f64();
    let (report, threads) = (watch.report(), threads::report());
    format!(
        "nothing has moved for {seconds:.1} s: no worker has begun a turn, and no step has returned\n\
         {report}{threads}"
    )
}

fn endless(watch: &Watch, lasts: Duration) -> String {
    let seconds = lasts.as_secs_f64();
    let first = watch.report();
    thread::sleep(BETWEEN_REPORTS);
    let (second, threads) = (watch.report(), threads::report());
    format!(
        "the round does not end: {seconds:.1} s\n{first}\n{BETWEEN_REPORTS:?} later\n{second}{threads}"
    )
}
