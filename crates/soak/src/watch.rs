//! A time limit for a round, with a report of the threads' doings when the limit is reached.
//!
//! **Problem.** A lost wake-up makes a thread wait for ever, and a test that waits for the thread
//! says nothing.
//!
//! **Rejected.** Deadlines for all waits: they are wake-ups, and hide the lost wake-up. A lock
//! around each thread's note: a processor orders its accesses at every lock, which hides missing
//! orderings.
//!
//! **Protocol.** A round runs on a thread of its own. Before each act its threads note the act, by
//! a plain store. When the limit is reached, the watcher reads these notes twice, and leaves the
//! threads to themselves.

use crate::panic::message;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The time between two looks at threads that may hang.
const BETWEEN: Duration = Duration::from_millis(500);

/// The threads of a round.
#[derive(Debug, Default)]
pub struct Watch {
    threads: Mutex<Vec<(String, Arc<Doing>)>>,
}

/// The note of a thread's present act: the thread writes it, and the watcher reads it.
#[derive(Debug)]
pub struct Doing {
    names: &'static [&'static str],
    /// How many things it has begun, and in the lowest bits the index of the last.
    note: AtomicU64,
}

/// The bits of an index.
const INDEX: u32 = 8;

/// Runs `round` on a thread of its own, and waits for it until `limit` has passed.
///
/// # Errors
/// The round's own error; a panic; or a timeout, with the present act of each thread. After a
/// timeout the threads go on, so the process had better end.
pub fn within<T: Send + 'static>(
    limit: Duration,
    round: impl FnOnce(&Watch) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let watch = Arc::new(Watch::default());
    let (sender, result) = channel();
    let watched = Arc::clone(&watch);
    let thread = thread::spawn(move || {
        // The receiver is gone when the limit has passed.
        let _ = sender.send(round(&watched));
    });
    let result = match result.recv_timeout(limit) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => return Err(watch.report(limit)),
        Err(RecvTimeoutError::Disconnected) => Err(String::new()),
    };
    match thread.join() {
        Ok(()) => result,
        Err(panic) => Err(format!("a panic: {}\n", message(&*panic))),
    }
}

impl Watch {
    /// Registers a thread that does these things, a single thing at a time. The first thing is its
    /// first note.
    ///
    /// # Panics
    /// If `names` is empty, or has more than 256.
    pub fn thread(&self, name: impl Into<String>, names: &'static [&'static str]) -> Arc<Doing> {
        assert!((1..=1 << INDEX).contains(&names.len()), "{}", names.len());
        let note = AtomicU64::new(0);
        let doing = Arc::new(Doing { names, note });
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push((name.into(), Arc::clone(&doing)));
        doing
    }

    fn report(&self, limit: Duration) -> String {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let look = || -> Vec<_> { threads.iter().map(|(_, doing)| doing.look()).collect() };
        let first = look();
        thread::sleep(BETWEEN);
        let mut report = format!("not over after {limit:?}:\n");
        for ((name, doing), (before, now)) in threads.iter().zip(first.into_iter().zip(look())) {
            let what = doing.names[now.1];
            let moves = if before.0 == now.0 {
                "stands"
            } else {
                "goes on"
            };
            writeln!(report, "  {name}: {what}, {moves} (after {} calls)", now.0)
                .expect("a string takes everything");
        }
        report
    }
}

impl Doing {
    /// Notes that the thread begins the thing with this index.
    pub fn begins(&self, index: usize) {
        // Ordering: Relaxed: only this thread writes the note, and it publishes nothing else.
        let count = self.note.load(Ordering::Relaxed) >> INDEX;
        let note = (count + 1) << INDEX | index as u64;
        self.note.store(note, Ordering::Relaxed);
    }

    /// Returns the number of things that the thread has begun, and the last.
    fn look(&self) -> (u64, usize) {
        // Ordering: Relaxed: the watcher reads the note alone.
        let note = self.note.load(Ordering::Relaxed);
        let index = note.to_le_bytes()[0].into();
        (note >> INDEX, index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(60);
    const NAMES: &[&str] = &["starting", "working", "waiting"];

    #[test]
    fn what_a_round_returns_comes_back() {
        assert_eq!(within(LONG, |_| Ok(1)), Ok(1));
        assert_eq!(
            within::<()>(LONG, |_| Err("lost".to_owned())),
            Err("lost".to_owned())
        );
    }

    #[test]
    fn a_panic_comes_back_as_an_error() {
        let panic = within::<()>(LONG, |_| panic!("by {}", 2));
        assert_eq!(panic, Err("a panic: by 2\n".to_owned()));
    }

    #[test]
    fn a_round_that_is_not_over_says_what_its_threads_do() {
        let (end, ended) = channel::<()>();
        let report = within::<()>(Duration::from_millis(20), move |watch| {
            watch.thread("idle", NAMES);
            let busy = watch.thread("busy", NAMES);
            let doing = watch.thread("asleep", NAMES);
            thread::spawn(move || {
                while Arc::strong_count(&busy) > 1 {
                    busy.begins(1);
                    thread::yield_now();
                }
            });
            doing.begins(1);
            doing.begins(2);
            // Until the test is over.
            let _over = ended.recv();
            Ok(())
        });
        drop(end);
        let report = report.unwrap_err();
        let lines: Vec<_> = report.lines().collect();
        assert_eq!(lines[0], "not over after 20ms:");
        assert_eq!(lines[1], "  idle: starting, stands (after 0 calls)");
        assert!(
            lines[2].starts_with("  busy: working, goes on (after "),
            "{report}"
        );
        assert_eq!(lines[3], "  asleep: waiting, stands (after 2 calls)");
    }
}
