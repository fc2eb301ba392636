//! Loops of idle priority, a loop on each processor, so no processor ever halts (`mode.rs` says
//! why).
//!
//! The loops are threads of this program, because they end with it however it ends, a `SIGKILL`
//! included; processes of their own would need to be told. The program's children take over neither
//! their priority nor their processor: a child inherits them from the thread that starts it, which
//! is never a loop.
//!
//! If the kernel shares time out between sessions first (`sched_autogroup_enabled`), the priority
//! counts within a session only. The measured processes stay in this session, so they lose nothing
//! to the loops; processes in other sessions do.
//!
//! 1. A thread pins itself, takes the priority, checks both, and reports the result.
//! 2. It spins until the loops are dropped.
//! 3. The drop waits until all threads have ended: then the machine is as before.

use crate::contest::cpu;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

/// Spinning loops, until the drop.
#[derive(Debug)]
pub(super) struct Loops {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Loops {
    /// Starts a loop on each processor that this program may use. Blocks until all loops spin.
    ///
    /// # Errors
    /// The reason; no loop is left.
    pub(super) fn start() -> Result<Self, String> {
        let mut loops = Self {
            is_over: Arc::default(),
            threads: Vec::new(),
        };
        let (sender, ready) = mpsc::channel();
        // Asked here, before any thread is pinned.
        for nth in 0..cpu::count() {
            let (is_over, sender) = (loops.is_over.clone(), sender.clone());
            let body = move || spin(nth, &is_over, &sender);
            let thread = thread::Builder::new().name(format!("idle loop {nth}"));
            let thread = thread.spawn(body).map_err(|error| error.to_string())?;
            loops.threads.push(thread);
        }
        drop(sender);
        for state in ready.iter().take(loops.threads.len()) {
            state?;
        }
        Ok(loops)
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        // Ordering: Relaxed, pairs with `spin`: nothing is read because of it.
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "a loop has nothing to panic about");
        }
    }
}

/// Runs a loop's thread.
fn spin(nth: usize, is_over: &AtomicBool, ready: &mpsc::Sender<Result<(), String>>) {
    let _pinned = cpu::pin(nth);
    let state = system::yield_to_all();
    let spins = state.is_ok();
    // A dropped receiver has been told of another loop's failure.
    let _unheard = ready.send(state);
    // Ordering: Relaxed, pairs with `drop`: nothing is read because of it.
    while spins && !is_over.load(Ordering::Relaxed) {
        spin_loop();
    }
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::sched_getaffinity;
    use std::io;

    /// Gives the calling, pinned thread idle priority.
    pub(super) fn yield_to_all() -> Result<(), String> {
        let allowed = sched_getaffinity(None).map_err(|error| error.to_string())?;
        if allowed.count() != 1 {
            return Err("the system does not pin threads to a processor".to_owned());
        }
        // SAFETY: all fields are numbers, for which zero is valid.
        let mut none: libc::sched_param = unsafe { std::mem::zeroed() };
        none.sched_priority = 0;
        // SAFETY: the call reads the parameters, which live until it returns; 0 is the calling
        // thread.
        let refused = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) };
        if refused != 0 {
            let error = io::Error::last_os_error();
            return Err(format!("the system refuses idle priority: {error}"));
        }
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn yield_to_all() -> Result<(), String> {
        Err("loops of idle priority need Linux".to_owned())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::process::Command;
    use std::time::Duration;

    /// Returns the kernel's description of a thread: its name, its policy, and its allowed
    /// processors.
    fn described(stat: &str, status: &str) -> (String, i32, String) {
        let (name, rest) = stat.rsplit_once(')').unwrap();
        let (_, name) = name.split_once('(').unwrap();
        // The fields behind the name begin with the third; the policy is the 41st.
        let policy = rest.split_whitespace().nth(41 - 3).unwrap();
        let line = |line: &str| Some(line.strip_prefix("Cpus_allowed_list:")?.trim().to_owned());
        let allowed = status.lines().find_map(line).unwrap();
        (name.to_owned(), policy.parse().unwrap(), allowed)
    }

    /// Returns the loops among the threads of this process.
    fn loops() -> Vec<(i32, String)> {
        let mut loops = Vec::new();
        for task in fs::read_dir("/proc/self/task").unwrap() {
            let path = task.unwrap().path();
            let read = |name: &str| fs::read_to_string(path.join(name));
            // Threads of other tests come and go.
            let (Ok(stat), Ok(status)) = (read("stat"), read("status")) else {
                continue;
            };
            let (name, policy, allowed) = described(&stat, &status);
            if name.starts_with("idle loop ") {
                loops.push((policy, allowed));
            }
        }
        loops
    }

    #[test]
    fn each_processor_has_a_loop_that_yields_to_all_and_what_is_started_is_like_others() {
        let child = || {
            let files = ["/proc/self/stat", "/proc/self/status"];
            let output = Command::new("cat").args(files).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let (stat, status) = text.split_once('\n').unwrap();
            described(stat, status)
        };
        let before = child();
        let started = Loops::start().unwrap();
        let found = loops();
        assert_eq!(found.len(), cpu::count());
        assert!(found.iter().all(|(policy, _)| *policy == libc::SCHED_IDLE));
        let places: BTreeSet<usize> = found.iter().map(|(_, at)| at.parse().unwrap()).collect();
        assert_eq!(places.len(), cpu::count(), "{found:?}");
        assert_eq!(child(), before);
        assert_ne!(before.1, libc::SCHED_IDLE);
        drop(started);
        // A joined thread may still be on its way out, while other threads have the processor.
        let is_gone = || {
            thread::sleep(Duration::from_millis(5));
            loops().is_empty()
        };
        assert!((0..6_000).any(|_| is_gone()), "{:?}", loops());
    }
}
