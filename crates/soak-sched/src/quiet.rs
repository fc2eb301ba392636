//! A quiet point: no process is alive, no cache has memory, and no spare thread is there.

use crate::actor::{Behaviour, Mail, Next, Turn};
use crate::faults::Faults;
use crate::site::{Site, wait};
use crate::watch::Watch;
use fastrand::Rng;
use ganger::{BoxError, WeakHandle};
use std::sync::{Arc, Barrier};

/// Empties the caches of a scheduler without live processes, when its spare threads have ended:
/// their contents differ from a quiet point to the next. Each worker is held in a step until all
/// are, and empties its own caches.
pub(crate) fn empty_caches(site: &Site, watch: &Watch, workers: usize) -> Result<(), String> {
    watch.until("the spare threads have ended", || {
        site.runtime.stats().spares == 0
    });
    let (kit, mut random) = (site.kit(Faults::default()), Rng::with_seed(0));
    let all = Arc::new(Barrier::new(workers));
    let emptier = || Emptier {
        all: Arc::clone(&all),
        scheduler: site.runtime.downgrade(),
    };
    let handles: Vec<_> = (0..workers)
        .map(|_| site.submit_surely(&kit, &mut random, emptier))
        .collect();
    for handle in handles {
        drop(wait(watch, handle));
    }
    site.settle(watch)?;
    site.runtime.release_memory();
    Ok(())
}

struct Emptier {
    all: Arc<Barrier>,
    scheduler: WeakHandle,
}

impl Behaviour for Emptier {
    fn turn(&mut self, _: Vec<Mail>, _: &mut Turn<'_>) -> Result<Next, BoxError> {
        self.all.wait();
        if let Some(scheduler) = self.scheduler.upgrade() {
            scheduler.release_memory();
        }
        Ok(Next::Done(0))
    }
}
