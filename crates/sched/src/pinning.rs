//! Which cores workers run on.
//!
//! **Problem.** The system moves threads between cores, and the caches' contents stay behind. Who has
//! cores to himself may want each worker to keep one. But a worker that has been relieved (`crew.rs`)
//! still computes on its core, and the spare in its place would get half of it.
//!
//! **Rejected.** Spares that are never pinned: workers and spares change places, so that after some
//! blocked steps no pinned thread would be on duty. Spares that share the core of a step that
//! computes.
//!
//! **Rule.** A core belongs to a place on duty, not to a thread. Who goes on duty in a place is pinned to
//! its core, and who has been relieved may run on all cores that the process had when the scheduler was
//! built, until it is on duty again. The monitor and the reaper are not pinned.

use crate::config::BuildError;
use std::fmt;

/// Which cores a scheduler's workers run on; see [`Builder::pin_workers`](crate::Builder::pin_workers).
///
/// Cores have the numbers that the system gives them: on Linux those of `processor` in `/proc/cpuinfo`,
/// from 0 up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Pinning {
    /// The system decides, and moves them as it likes.
    #[default]
    Off,
    /// One core for each worker, in turn, out of those that the thread that builds the scheduler may
    /// use: its affinity mask, which the system keeps within the cgroup's cpuset.
    RoundRobin,
    /// These cores for the workers in turn; from the first again when there are more workers.
    Cores(Vec<usize>),
}

/// The cores of places, and all that the process may use.
#[cfg(target_os = "linux")]
pub(crate) struct Pins {
    all: rustix::thread::CpuSet,
    /// Not empty; of the place with the index, modulo the length.
    cores: Vec<usize>,
}

#[cfg(target_os = "linux")]
impl Pins {
    /// What `pinning` means for this thread; none when the system decides.
    pub(crate) fn new(pinning: &Pinning) -> Result<Option<Self>, BuildError> {
        if *pinning == Pinning::Off {
            return Ok(None);
        }
        let all = rustix::thread::sched_getaffinity(None)
            .map_err(|error| BuildError::Affinity(error.into()))?;
        let allowed: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|&core| all.is_set(core))
            .collect();
        let cores = match pinning {
            Pinning::Cores(cores) => cores.clone(),
            _ => allowed.clone(),
        };
        if cores.is_empty() {
            return Err(BuildError::NoCores);
        }
        match cores.iter().find(|core| !allowed.contains(core)) {
            Some(&core) => Err(BuildError::Core { core, allowed }),
            None => Ok(Some(Self { all, cores })),
        }
    }

    /// Lets the calling thread run on the place's core alone.
    ///
    /// # Errors
    /// The core, and the system's reason for refusing it.
    pub(crate) fn pin(&self, place: usize) -> Result<(), (usize, std::io::Error)> {
        let core = self.cores[place % self.cores.len()];
        let mut only = rustix::thread::CpuSet::new();
        only.set(core);
        rustix::thread::sched_setaffinity(None, &only).map_err(|error| (core, error.into()))
    }

    /// Lets a thread run on all cores: one that is alive, or with 0 the calling one.
    pub(crate) fn release(&self, thread: u32) {
        let thread = i32::try_from(thread).ok();
        let thread = thread.and_then(rustix::thread::Pid::from_raw);
        // Should the process have lost all of these cores, the system has moved its threads already.
        let _ = rustix::thread::sched_setaffinity(thread, &self.all);
    }
}

/// No system but Linux pins.
#[cfg(not(target_os = "linux"))]
pub(crate) enum Pins {}

#[cfg(not(target_os = "linux"))]
impl Pins {
    pub(crate) fn new(pinning: &Pinning) -> Result<Option<Self>, BuildError> {
        match pinning {
            Pinning::Off => Ok(None),
            _ => Err(BuildError::Affinity(std::io::ErrorKind::Unsupported.into())),
        }
    }

    pub(crate) fn pin(&self, _: usize) -> Result<(), (usize, std::io::Error)> {
        match *self {}
    }

    pub(crate) fn release(&self, _: u32) {
        match *self {}
    }
}

/// Shows cores as ranges: `0-3, 8`.
pub(crate) struct Ranges<'a>(pub(crate) &'a [usize]);

impl fmt::Display for Ranges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|before, after| before + 1 == *after);
        for (nth, run) in runs.enumerate() {
            let comma = if nth > 0 { ", " } else { "" };
            match run {
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [only] => write!(f, "{comma}{only}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn cores_are_shown_as_ranges() {
        let shown = |cores: &[usize]| Ranges(cores).to_string();
        assert_eq!(shown(&[0, 1, 2, 3, 8, 10, 11]), "0-3, 8, 10-11");
        assert_eq!((shown(&[5]), shown(&[])), ("5".to_owned(), String::new()));
    }
}
