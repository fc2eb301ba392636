//! This process's use of the machine: memory (W8), processor time (W11), and the number of its
//! threads' sleeps (W10, W11). Read on Linux only.

pub(super) use system::{cpu_time, resident, switches};

#[cfg(target_os = "linux")]
mod system {
    use super::super::contestant::failed;
    use super::super::job::Error;
    use rustix::time::{ClockId, clock_gettime};
    use std::fs;
    use std::time::Duration;

    /// Returns the bytes of this process that are in memory.
    ///
    /// # Errors
    /// When this system does not tell.
    pub(crate) fn resident() -> Result<u64, Error> {
        let text = fs::read_to_string("/proc/self/statm").map_err(failed)?;
        let pages = text.split_whitespace().nth(1).unwrap_or_default();
        let pages: u64 = pages.parse().map_err(failed)?;
        Ok(pages * rustix::param::page_size() as u64)
    }

    /// Returns the processor time that all threads of this process have used.
    ///
    /// # Errors
    /// When this system does not tell.
    pub(crate) fn cpu_time() -> Result<Duration, Error> {
        Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).map_err(failed)
    }

    /// Returns how often the present threads of this process have given up a processor of their own
    /// accord: have slept or waited.
    ///
    /// # Errors
    /// When this system does not tell.
    pub(crate) fn switches() -> Result<u64, Error> {
        let mut switches = 0;
        for task in fs::read_dir("/proc/self/task").map_err(failed)? {
            let status = task.map_err(failed)?.path().join("status");
            // The thread may have ended meanwhile.
            let Ok(status) = fs::read_to_string(status) else {
                continue;
            };
            let line = |line: &str| Some(line.strip_prefix("voluntary_ctxt_switches:")?.to_owned());
            let count = status.lines().find_map(line).unwrap_or_default();
            switches += count.trim().parse::<u64>().map_err(failed)?;
        }
        Ok(switches)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::super::job::Error;
    use std::time::Duration;

    /// Returns an error: the bytes in memory are not measured here.
    ///
    /// # Errors
    /// Always: it is not measured on this system.
    pub(crate) fn resident() -> Result<u64, Error> {
        Err(Error::Missing("not measured here: needs Linux".to_owned()))
    }

    /// Returns an error: the processor time is not measured here.
    ///
    /// # Errors
    /// Always: it is not measured on this system.
    pub(crate) fn cpu_time() -> Result<Duration, Error> {
        Err(Error::Missing("not measured here: needs Linux".to_owned()))
    }

    /// How often its threads have slept or waited.
    ///
    /// # Errors
    /// Always: it is not measured on this system.
    pub(crate) fn switches() -> Result<u64, Error> {
        Err(Error::Missing("not measured here: needs Linux".to_owned()))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn memory_that_is_written_counts() {
        const MORE: usize = 64 << 20;
        let before = resident().unwrap();
        let bytes = std::hint::black_box(vec![1_u8; MORE]);
        let more = resident().unwrap() - before;
        drop(bytes);
        assert!(more >= 60 << 20, "{more}");
        assert!(more <= 128 << 20, "{more}");
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
