//! What this process uses of the machine: memory (W8) and processor time (W11). Read on Linux alone.

pub(super) use system::{cpu_time, resident};

#[cfg(target_os = "linux")]
mod system {
    use super::super::contestant::failed;
    use super::super::job::Error;
    use rustix::time::{ClockId, clock_gettime};
    use std::fs;
    use std::time::Duration;

    /// The bytes of this process that are in memory.
    ///
    /// # Errors
    /// When this system does not tell.
    pub(crate) fn resident() -> Result<u64, Error> {
        let text = fs::read_to_string("/proc/self/statm").map_err(failed)?;
        let pages = text.split_whitespace().nth(1).unwrap_or_default();
        let pages: u64 = pages.parse().map_err(failed)?;
        Ok(pages * rustix::param::page_size() as u64)
    }

    /// The processor time that all threads of this process have used.
    ///
    /// # Errors
    /// When this system does not tell.
    pub(crate) fn cpu_time() -> Result<Duration, Error> {
        Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).map_err(failed)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::super::job::Error;
    use std::time::Duration;

    /// The bytes of this process that are in memory.
    ///
    /// # Errors
    /// Always: it is not measured on this system.
    pub(crate) fn resident() -> Result<u64, Error> {
        Err(Error::Missing("not measured here: needs Linux".to_owned()))
    }

    /// The processor time that all threads of this process have used.
    ///
    /// # Errors
    /// Always: it is not measured on this system.
    pub(crate) fn cpu_time() -> Result<Duration, Error> {
        Err(Error::Missing("not measured here: needs Linux".to_owned()))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

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
    fn a_thread_that_computes_uses_time() {
        let before = cpu_time().unwrap();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(50) {}
        assert!(cpu_time().unwrap() - before >= Duration::from_millis(10));
    }
}
