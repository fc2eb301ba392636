//! The first processes forced by a stop, for its report and its log line.

use super::stopped::StoppedProcess;
use ganger_sync::atomic::{AtomicUsize, Ordering};
use ganger_sync::sync::{Mutex, lock};

/// How many are named in the report.
const NAMED: usize = 16;

/// The first forced processes.
#[derive(Default)]
pub(crate) struct Forced {
    /// At least the length of `first`. A thread need not take the lock when the list is full.
    count: AtomicUsize,
    first: Mutex<Vec<StoppedProcess>>,
}

impl Forced {
    /// Notes a forced process, if it is among the first. `look` looks at it.
    pub(crate) fn add(&self, look: impl FnOnce() -> StoppedProcess) {
        // Ordering: Relaxed for both: the count only decides whether the list has room, and the
        // lock orders the rest.
        if self.count.load(Ordering::Relaxed) < NAMED
            && self.count.fetch_add(1, Ordering::Relaxed) < NAMED
        {
            let process = look();
            lock(&self.first).push(process);
        }
    }

    /// Returns the first forced processes.
    pub(crate) fn first(&self) -> Vec<StoppedProcess> {
        lock(&self.first).clone()
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::progress::stopped::{LOGGED, Named};
    use ganger_proc_api::{HostName, Pid, Symbol};

    // pins: D4
    #[test]
    fn the_first_are_named_and_no_more() {
        let forced = Forced::default();
        let host = HostName::new("test").unwrap();
        assert_eq!(Named(&forced.first()).to_string(), "");
        for id in 1..=2 * NAMED as u64 {
            forced.add(|| StoppedProcess {
                pid: Pid::new(host, id),
                names: Vec::new(),
                type_name: Some("app::Worker"),
                method: Some(Symbol::new("main")),
                since: None,
            });
        }
        let first = forced.first();
        assert_eq!(first.len(), NAMED);
        assert!(first.iter().zip(1..).all(|(it, id)| it.pid.id() == id));
        let text = Named(&first).to_string();
        assert_eq!(text.matches(" main (app::Worker)").count(), LOGGED);
        assert!(
            text.starts_with("{test|1} main (app::Worker), {test|2} main"),
            "{text}"
        );
        assert!(text.ends_with(", and 8 more"), "{text}");
    }
}
