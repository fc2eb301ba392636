//! rayon: a pool of threads that run closures, without processes.
//!
//! A caller is a chain of jobs: each spawns the next job, on the same pool. So an answer wakes no
//! other party.

use crate::whole::contestant::{Contestant, Services, Timed, failed};
use crate::whole::gate::{Gate, gate};
use crate::whole::job::Error;
use crate::whole::jobs::{POOL, compute};
use crate::whole::load::Act;
use ::rayon::{ThreadPool, ThreadPoolBuilder};
use std::time::Duration;

/// A pool of threads.
#[derive(Debug)]
pub(super) struct Rayon {
    threads: ThreadPool,
}

impl Rayon {
    /// Creates a pool with `workers` threads, and at most as many as jobs may be done at a time.
    pub(super) fn new(workers: usize) -> Result<Self, Error> {
        let threads = ThreadPoolBuilder::new().num_threads(workers.min(POOL));
        Ok(Self {
            threads: threads.build().map_err(failed)?,
        })
    }
}

/// Does the jobs from `left` down to 1, in sequence. For a thread of the pool.
fn spawn(left: u64, sum: u64, length: Duration, gate: &'static Gate) {
    ::rayon::spawn(move || {
        let sum = sum + compute(left, length);
        if left == 1 {
            gate.hit_with(sum);
        } else {
            spawn(left - 1, sum, length, gate);
        }
    });
}

impl Contestant for Rayon {
    /// A pool has no actors.
    type Ref<A: Act> = ();
}

impl Services for Rayon {
    fn pool(&self, callers: u64, jobs: u64, length: Duration) -> Timed {
        let gate = gate();
        gate.time(callers, || {
            self.threads.spawn(move || {
                for _ in 0..callers {
                    spawn(jobs, 0, length, gate);
                }
            });
            Ok(())
        })
    }
}
