//! The promised state of the queues and the sleepers' word when no thread moves anything.
//!
//! While a worker sleeps and no worker searches:
//! 1. The global queue and both lanes are empty: the pusher has woken a worker, and the woken
//!    worker went to sleep again only after a look at everything.
//! 2. No deque has two processes: a worker that pushes to a deque with a process wakes another
//!    worker, and so does a worker that takes a process and leaves others.
//! 3. A process alone in a deque came there in the present turn of its worker, and the monitor
//!    watches it: a step has woken the process, and the worker takes it next.
//! 4. After two looks of the monitor the process is gone, if the worker has done nothing else. The
//!    first look sees the turn. The second sees the same turn, and wakes a worker.

use super::{Checker, violation};
use crate::runtime::shared::Shared;
use ganger_sync::atomic::{Ordering, fence};
use ganger_sync::sync::lock;

/// After how many of the monitor's looks a process is handed on.
const LOOKS: u64 = 2;

/// The results of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Audits that saw a sleeping worker while no thread moved anything.
    pub audits: u64,
    /// How many of these saw a process left by a step to its own worker.
    pub deferred: u64,
    /// Picks compared with the bound on waiting.
    pub picks: u64,
    /// The longest wait of a process, in picks of its workers.
    pub worst: u64,
    /// The number of processes in front of this process when it was queued.
    pub before: u64,
    /// The bound of this process.
    pub bound: u64,
    /// The largest part of its bound that any process has waited, in thousandths.
    pub closest: u64,
}

#[derive(Default)]
pub(super) struct Auditor {
    audits: u64,
    deferred: u64,
    /// For each worker, the lone process last seen in its deque.
    lone: Vec<Option<Lone>>,
}

/// The only process in a deque.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Lone {
    /// The version of its worker then. If it is the same later, the worker has done nothing since.
    version: u64,
    /// How many looks of the monitor were over.
    looks: u64,
}

/// The state at a moment.
struct Still {
    versions: Vec<u64>,
    /// The workers' versions when they had found a process, or were about to block.
    picked: Vec<u64>,
    sleeping: u32,
    searching: u32,
    unwatched: bool,
    global: usize,
    urgent: usize,
    arrivals: usize,
    deques: Vec<usize>,
    looks: u64,
}

impl Checker {
    pub(super) fn summary(&self) -> Summary {
        let auditor = lock(&self.auditor);
        let (audits, deferred) = (auditor.audits, auditor.deferred);
        drop(auditor);
        let worst = *lock(&self.worst);
        // Ordering: Relaxed: a count.
        let picks = self.slots.iter().map(|s| s.picks.load(Ordering::Relaxed));
        Summary {
            audits,
            deferred,
            picks: picks.sum(),
            worst: worst.waited,
            before: worst.before,
            bound: self.bound_of(worst.before),
            closest: worst.closest,
        }
    }

    /// Returns whether the look found a moment in which no thread moved anything.
    pub(crate) fn audit(&self, shared: &Shared) -> bool {
        let Some(now) = self.look(shared) else {
            return false;
        };
        if let Err(found) = lock(&self.auditor).judge(&now) {
            let (sleeping, global, urgent) = (now.sleeping, now.global, now.urgent);
            let beside = format!(
                "{found}, beside {sleeping} sleeping workers, and no worker searches or is about \
                 to wake one; {global} in the global queue, {urgent} in the urgent lane, {:?} in \
                 the deques",
                now.deques
            );
            violation("G2", &beside);
        }
        true
    }

    /// Returns all versions, if all are even.
    fn versions(&self, used: usize) -> Option<Vec<u64>> {
        // Ordering: SeqCst: the finished pushes are read first, so no thread is inside when both
        // counts are equal.
        let over = self.over.load(Ordering::SeqCst);
        // Ordering: SeqCst: read after the finished pushes.
        let begun = self.begun.load(Ordering::SeqCst);
        let workers = self.slots[..used].iter().map(|slot| &**slot);
        // Ordering: Acquire pairs with the Release in `Slot::end`.
        let versions = workers.chain([self.monitor()]);
        let versions: Vec<u64> = versions
            .map(|slot| slot.version.load(Ordering::Acquire))
            .chain([2 * begun])
            .collect();
        let is_still = over == begun && versions.iter().all(|version| version % 2 == 0);
        is_still.then_some(versions)
    }

    fn look(&self, shared: &Shared) -> Option<Still> {
        let used = shared.stealers().len();
        let versions = self.versions(used)?;
        let idle = shared.queues.idle.snapshot();
        let now = Still {
            sleeping: idle.sleeping,
            searching: idle.searching,
            unwatched: idle.unwatched,
            global: shared.queues.global.len(),
            urgent: shared.queues.urgent.len(),
            arrivals: shared.queues.arrivals.len(),
            deques: shared.stealers()[..used].iter().map(|s| s.len()).collect(),
            // Ordering: Relaxed: the versions order it.
            picked: self.slots[..used]
                .iter()
                .map(|slot| slot.picked.load(Ordering::Relaxed))
                .collect(),
            // Ordering: Relaxed: the versions order it.
            looks: self.looks.load(Ordering::Relaxed),
            versions,
        };
        // Ordering: Acquire pairs with the Release fence in `Slot::begin`: a reader that saw a
        // write behind that fence sees the odd version.
        fence(Ordering::Acquire);
        let is_same = shared.queues.idle.snapshot() == idle
            && self.versions(used).as_ref() == Some(&now.versions)
            && shared.stealers().len() == used;
        // From there on the reaper takes from the queues as well, and sleeping workers are woken.
        let is_over = shared.shutdown.is_terminating() || shared.shutdown.is_halted();
        (is_same && !is_over).then_some(now)
    }
}

impl Auditor {
    fn judge(&mut self, now: &Still) -> Result<(), String> {
        self.lone.resize(now.deques.len(), None);
        if now.sleeping == 0 || now.searching > 0 {
            self.lone.fill(None);
            return Ok(());
        }
        self.audits += 1;
        if now.global > 0 {
            return Err("processes lie in the global queue".to_owned());
        }
        if now.urgent > 0 {
            return Err("processes lie in the urgent lane".to_owned());
        }
        if now.arrivals > 0 {
            return Err("processes lie in the lane of arrivals".to_owned());
        }
        let deques = now.deques.iter().zip(&now.versions).zip(&mut self.lone);
        for (worker, ((&len, &version), lone)) in deques.enumerate() {
            if len == 0 {
                *lone = None;
                continue;
            }
            if len > 1 {
                return Err(format!(
                    "{len} processes lie in the deque of worker {worker}"
                ));
            }
            if version == now.picked[worker] {
                return Err(format!(
                    "a process was left in the deque of worker {worker}, which has gone on"
                ));
            }
            if now.unwatched {
                return Err(format!(
                    "a process lies in the deque of worker {worker}, and the monitor sleeps"
                ));
            }
            self.deferred += 1;
            let first = lone.filter(|lone| lone.version == version).unwrap_or(Lone {
                version,
                looks: now.looks,
            });
            *lone = Some(first);
            let looks = now.looks - first.looks;
            if looks >= LOOKS {
                return Err(format!(
                    "a process lies in the deque of worker {worker}, whose step goes on, and the \
                     monitor has looked {looks} times since"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    fn still() -> Still {
        Still {
            versions: vec![4, 6, 2, 0],
            picked: vec![2, 6],
            sleeping: 1,
            searching: 0,
            unwatched: false,
            global: 0,
            urgent: 0,
            arrivals: 0,
            deques: vec![0, 0],
            looks: 7,
        }
    }

    // pins: G2
    #[test]
    fn what_lies_beside_a_sleeper_is_found() {
        let judge = |now: &Still| Auditor::default().judge(now);
        assert_eq!(judge(&still()), Ok(()));
        let mut now = still();
        now.global = 1;
        assert!(judge(&now).unwrap_err().contains("global"));
        now.searching = 1;
        assert_eq!(judge(&now), Ok(()), "a searcher finds it");
        let mut now = still();
        now.urgent = 1;
        assert!(judge(&now).unwrap_err().contains("urgent"));
        let mut now = still();
        now.arrivals = 1;
        assert!(judge(&now).unwrap_err().contains("arrivals"));
        let mut now = still();
        now.deques[1] = 2;
        assert!(judge(&now).unwrap_err().contains("worker 1"));
        now.sleeping = 0;
        assert_eq!(judge(&now), Ok(()), "nobody is free");
        let mut now = still();
        now.deques[0] = 1;
        assert_eq!(judge(&now), Ok(()), "this turn has woken it");
        now.picked[0] = 4;
        assert!(judge(&now).unwrap_err().contains("has gone on"));
    }

    // pins: G2
    #[test]
    fn a_lone_process_is_left_to_its_worker_while_the_monitor_watches() {
        let mut auditor = Auditor::default();
        let mut now = still();
        now.deques[0] = 1;
        assert_eq!(auditor.judge(&now), Ok(()));
        now.looks += 1;
        assert_eq!(auditor.judge(&now), Ok(()), "the look that sees the turn");
        now.looks += 1;
        assert!(auditor.judge(&now).unwrap_err().contains("2 times"));
        // Another process, for the worker has moved.
        now.versions[0] += 2;
        assert_eq!(auditor.judge(&now), Ok(()));
        now.unwatched = true;
        assert!(auditor.judge(&now).unwrap_err().contains("sleeps"));
    }
}
