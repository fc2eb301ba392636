//! The first few processes that a stop has forced, for its log line.

use ganger_proc_api::{Pid, Symbol};
use ganger_sync::atomic::{AtomicUsize, Ordering};
use ganger_sync::sync::{Mutex, lock};
use std::fmt;

/// How many are named.
const NAMED: usize = 8;

/// The first processes that have been forced.
#[derive(Default)]
pub(crate) struct Forced {
    /// At least the length of `first`. A thread that sees it full need not take the lock.
    count: AtomicUsize,
    first: Mutex<Named>,
}

/// Processes, by PID and method.
#[derive(Clone, Default)]
pub(crate) struct Named(Vec<(Pid, Symbol)>);

impl Forced {
    /// Notes that this process has been forced.
    pub(crate) fn add(&self, pid: Pid, method: Symbol) {
        // Ordering: Relaxed for both: the count says only whether there is room, and the lock
        // orders the rest.
        if self.count.load(Ordering::Relaxed) < NAMED
            && self.count.fetch_add(1, Ordering::Relaxed) < NAMED
        {
            lock(&self.first).0.push((pid, method));
        }
    }

    /// The first of them.
    pub(crate) fn first(&self) -> Named {
        lock(&self.first).clone()
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, (pid, method)) in self.0.iter().enumerate() {
            let comma = if nth > 0 { ", " } else { "" };
            write!(f, "{comma}{pid} {method}")?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use ganger_proc_api::HostName;

    // pins: D4
    #[test]
    fn the_first_are_named_and_no_more() {
        let forced = Forced::default();
        let host = HostName::new("test").unwrap();
        assert_eq!(forced.first().to_string(), "");
        for id in 1..=2 * NAMED as u64 {
            forced.add(Pid::new(host, id), Symbol::new("main"));
        }
        let text = forced.first().to_string();
        assert_eq!(text.matches(" main").count(), NAMED);
        let first = format!("{} main, {} main, ", Pid::new(host, 1), Pid::new(host, 2));
        assert!(text.starts_with(&first), "{text}");
        assert!(text.ends_with(&format!("{} main", Pid::new(host, NAMED as u64))));
    }
}
