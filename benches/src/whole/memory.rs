//! This process's use of the machine: memory (W8), processor time (W11), and the number of its
//! threads' sleeps (W10, W11). Read on Linux only.

use super::job::Error;
use crate::text::number;
use std::fs;
use std::time::Duration;

fn untold() -> Error {
    Error::Missing("not measured here: needs Linux".to_owned())
}

/// Returns the bytes of this process that are in memory.
///
/// # Errors
/// When this system does not tell.
pub(super) fn resident() -> Result<u64, Error> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = number(&status, "VmRSS:").ok_or_else(untold)?;
    Ok(1024 * kilobytes)
}

/// Returns the processor time that all threads of this process have used.
///
/// # Errors
/// When this system does not tell.
pub(super) fn cpu_time() -> Result<Duration, Error> {
    #[cfg(target_os = "linux")]
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).try_into();
    #[cfg(not(target_os = "linux"))]
    let time: Result<Duration, ()> = Err(());
    time.map_err(|_| untold())
}

/// Returns how often the present threads of this process have given up a processor of their own
/// accord: have slept or waited.
///
/// # Errors
/// When this system does not tell.
pub(super) fn switches() -> Result<u64, Error> {
    let tasks = fs::read_dir("/proc/self/task").map_err(|_| untold())?;
    // A thread may have ended meanwhile.
    let status = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
    Ok(status
        .filter_map(|it| number(&it, "voluntary_ctxt_switches:"))
        .sum())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_written_counts() {
        const MORE: usize = 64 << 20;
        // Another test allocates or frees meanwhile.
        assert!((0..100).any(|_| {
            let before = resident().unwrap();
            let bytes = std::hint::black_box(vec![1_u8; MORE]);
            let more = resident().unwrap().saturating_sub(before);
            drop(bytes);
            (60 << 20..=128 << 20).contains(&more)
        }));
    }

    #[test]
    fn a_thread_that_sleeps_switches() {
        const SLEEPS: u64 = 20;
        // The count of an ending thread of another test is lost.
        assert!((0..100).any(|_| {
            let before = switches().unwrap();
            (0..SLEEPS).for_each(|_| std::thread::sleep(Duration::from_micros(100)));
            switches().unwrap() >= before + SLEEPS
        }));
    }
}
