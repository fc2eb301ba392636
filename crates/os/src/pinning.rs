//! Pins threads to cores.
//!
//! **Problem.** The system moves threads between cores, and the contents of the caches stay behind.
//! In a program with its own cores each worker may keep a core. But a blocked worker's thread may
//! still compute on its core, and the thread in its place would get half of the core.
//!
//! **Rejected.** Spare threads that are never pinned: workers and spares change places, so soon no
//! pinned thread would be active. Spares that share the core of the replaced thread.
//!
//! **Rule.** A core belongs to a place, not to a thread. A thread that takes a place is pinned to
//! its core. A released thread may run on all cores that the process had when [`Pins`] was made.

use crate::system::{allow_cores, allowed_cores};
use std::{fmt, io};

/// The cores on which a scheduler's workers run.
///
/// Cores have the system's numbers: on Linux the numbers of `processor` in `/proc/cpuinfo`, from 0
/// up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Pinning {
    /// The system decides, and may move workers between cores.
    #[default]
    Off,
    /// A core for each worker, in turn, from the cores of the thread that builds the scheduler: its
    /// affinity mask, which the system keeps within the cgroup's cpuset.
    RoundRobin,
    /// These cores for the workers in turn; more workers than cores begin again at the first core.
    Cores(Vec<usize>),
}

/// Why threads can't be pinned.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// A core does not exist, or the process may not use it.
    #[error(
        "core {core} does not exist or is not allowed; this process may use {}",
        Ranges(allowed)
    )]
    Core {
        /// The number of the core.
        core: usize,
        /// The cores that the process may use, in order.
        allowed: Vec<usize>,
    },
    /// The list of cores is empty.
    #[error("the list of cores is empty")]
    NoCores,
    /// The system does not say which cores the process may use. Only Linux does.
    #[error("can't pin threads on this system: {0}")]
    System(io::Error),
}

/// The cores of places, and all cores of the process.
#[derive(Debug)]
pub struct Pins {
    allowed: Vec<usize>,
    /// Not empty. Place `n` has the core at index `n`, modulo the length.
    cores: Vec<usize>,
}

impl Pins {
    /// Returns the pins for `pinning` on this thread; `None` if the system decides.
    ///
    /// # Errors
    /// [`PinError`] if a core does not exist, or the system does not pin threads.
    pub fn new(pinning: &Pinning) -> Result<Option<Self>, PinError> {
        if *pinning == Pinning::Off {
            return Ok(None);
        }
        let allowed = allowed_cores().map_err(PinError::System)?;
        let cores = match pinning {
            Pinning::Cores(cores) => cores.clone(),
            _ => allowed.clone(),
        };
        if cores.is_empty() {
            return Err(PinError::NoCores);
        }
        match cores.iter().find(|core| !allowed.contains(core)) {
            Some(&core) => Err(PinError::Core { core, allowed }),
            None => Ok(Some(Self { allowed, cores })),
        }
    }

    /// Restricts the calling thread to the place's core.
    ///
    /// # Errors
    /// The core, and the system's reason for refusing it.
    pub fn pin(&self, place: usize) -> Result<(), (usize, io::Error)> {
        let core = self.cores[place % self.cores.len()];
        allow_cores(0, &[core]).map_err(|error| (core, error))
    }

    /// Lets a thread run on all cores: a thread that is alive, or with 0 the calling thread.
    pub fn release(&self, thread: u32) {
        // Ignores an error: if the process has lost all of these cores, the system has already
        // moved its threads.
        let _ = allow_cores(thread, &self.allowed);
    }
}

/// Shows cores as ranges: `0-3, 8`.
#[derive(Debug)]
pub struct Ranges<'a>(pub &'a [usize]);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_shown_as_ranges() {
        let shown = |cores: &[usize]| Ranges(cores).to_string();
        assert_eq!(shown(&[0, 1, 2, 3, 8, 10, 11]), "0-3, 8, 10-11");
        assert_eq!((shown(&[5]), shown(&[])), ("5".to_owned(), String::new()));
    }
}
