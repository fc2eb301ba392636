//! The plan of a round, drawn from its seed.

use crate::faults::Faults;
use fastrand::Rng;
use ganger_soak::chance::pick;
use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

/// The highest ratio of workers to cores.
const MOST_OVERSUBSCRIBED: usize = 4;

/// A deadline for processes that are bound to end: the watchdog's patience is over before.
pub(crate) const PATIENT_MS: u64 = 600_000;

/// How many threads submit processes up to the limit.
pub(crate) const CROWDS: u64 = 3;

/// More processes than all workloads together need at a time, but for storms.
const ROOM: usize = 4_000;

/// A round: a scheduler from its start to its end, with waves of workloads in between.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) site: SitePlan,
    pub(crate) waves: Vec<Wave>,
    pub(crate) ending: Ending,
}

/// A scheduler.
#[derive(Debug)]
pub(crate) struct SitePlan {
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    pub(crate) deque_capacity: usize,
    pub(crate) event_batch: usize,
    pub(crate) global_batch: usize,
    pub(crate) rotation: u32,
    pub(crate) spins: u32,
    pub(crate) max_spares: usize,
    pub(crate) keep_spares: Duration,
    pub(crate) mailbox_limit: Option<usize>,
    pub(crate) max_processes: Option<usize>,
    /// At every how many-th start the hook refuses; 0: never.
    pub(crate) refuse_starts: u64,
    /// The threads that answer later.
    pub(crate) answerers: usize,
}

/// A kind of workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Mesh,
    Ring,
    FanIn,
    FanOut,
    Storm,
    Commands,
    Blocking,
    Timers,
    Trees,
}

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Mesh,
        Self::Ring,
        Self::FanIn,
        Self::FanOut,
        Self::Storm,
        Self::Commands,
        Self::Blocking,
        Self::Timers,
        Self::Trees,
    ];

    /// Returns the workload's name in the summary.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mesh => "mesh",
            Self::Ring => "ring",
            Self::FanIn => "fan_in",
            Self::FanOut => "fan_out",
            Self::Storm => "storm",
            Self::Commands => "commands",
            Self::Blocking => "blocking",
            Self::Timers => "timers",
            Self::Trees => "trees",
        }
    }
}

/// Workloads that run at the same time.
#[derive(Debug)]
pub(crate) struct Wave {
    pub(crate) jobs: Vec<JobPlan>,
    pub(crate) faults: Faults,
    /// How often a process is terminated, cancelled or upgraded from outside, in 100; 0: never.
    pub(crate) chaos: u32,
    pub(crate) chaos_seed: u64,
}

/// One workload.
#[derive(Debug)]
pub(crate) struct JobPlan {
    pub(crate) kind: Kind,
    pub(crate) seed: u64,
    /// How large the workload is, from 1 up.
    pub(crate) size: usize,
}

/// How a scheduler ends while processes are alive.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) seed: u64,
    /// Processes that finish at once when asked, after another command, and not at all.
    pub(crate) prompt: usize,
    pub(crate) asynchronous: usize,
    pub(crate) stubborn: usize,
    /// Processes whose step does not return before the stop has.
    pub(crate) stuck: usize,
    pub(crate) deadline_ms: u64,
    /// By dropping it, without a stop.
    pub(crate) by_drop: bool,
}

impl ganger_soak::Plan for Plan {
    fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let waves = random.usize(1..=3);
        Self {
            site: SitePlan::new(&mut random),
            waves: (0..waves).map(|_| Wave::new(&mut random)).collect(),
            ending: Ending::new(&mut random),
        }
    }
}

impl SitePlan {
    fn new(random: &mut Rng) -> Self {
        Self {
            seed: random.u64(..),
            workers: random.usize(1..=MOST_OVERSUBSCRIBED * cores()),
            deque_capacity: *pick(random, &[1, 16, 256, 256]),
            event_batch: *pick(random, &[1, 7, 256, 256]),
            global_batch: *pick(random, &[0, 1, 16, 16]),
            rotation: *pick(random, &[1, 5, 61, 61]),
            spins: *pick(random, &[0, 4, 4, 20]),
            max_spares: *pick(random, &[0, 1, 4, 64]),
            keep_spares: Duration::from_secs(10),
            mailbox_limit: *pick(random, &[None, None, Some(1), Some(10), Some(1_000)]),
            max_processes: *pick(random, &[None, None, Some(ROOM), Some(2 * ROOM)]),
            refuse_starts: *pick(random, &[0, 0, 1_000, 30]),
            answerers: random.usize(1..=3),
        }
    }

    /// Returns the plan of the scheduler that lives as long as the soak. Only this scheduler shows
    /// a leak that ends with its scheduler.
    pub(crate) fn veteran(seed: u64) -> Self {
        Self {
            seed,
            workers: cores(),
            deque_capacity: 256,
            event_batch: 256,
            global_batch: 16,
            rotation: 61,
            spins: 4,
            max_spares: 64,
            // A quiet point waits until they have ended.
            keep_spares: Duration::from_millis(20),
            mailbox_limit: None,
            max_processes: Some(2 * ROOM),
            refuse_starts: 1_000,
            answerers: 2,
        }
    }
}

impl Wave {
    pub(crate) fn new(random: &mut Rng) -> Self {
        let jobs = *pick(random, &[1, 1, 2, 3, 4]);
        Self {
            jobs: (0..jobs).map(|_| JobPlan::new(random)).collect(),
            faults: Faults::new(random),
            chaos: *pick(random, &[0, 5, 50, 100]),
            chaos_seed: random.u64(..),
        }
    }
}

impl JobPlan {
    fn new(random: &mut Rng) -> Self {
        Self {
            kind: *pick(random, &Kind::ALL),
            seed: random.u64(..),
            // Mostly small: beginnings and ends are where the races are.
            size: *pick(random, &[1, 2, 4, 8, 16, 40]),
        }
    }
}

impl Ending {
    fn new(random: &mut Rng) -> Self {
        let mut few = || *pick(random, &[0, 1, 3, 40]);
        let (prompt, asynchronous, stubborn) = (few(), few(), few());
        let stuck = *pick(random, &[0, 0, 1, 2]);
        let mut ending = Self {
            seed: random.u64(..),
            prompt,
            asynchronous,
            stubborn,
            stuck,
            deadline_ms: PATIENT_MS,
            by_drop: false,
        };
        if ending.is_bound_to_end() {
            ending.by_drop = random.bool();
        } else {
            // The stop waits for the deadline.
            ending.deadline_ms = *pick(random, &[0, 1, 20, 60]);
        }
        ending
    }

    /// Returns whether every process ends without being forced.
    pub(crate) fn is_bound_to_end(&self) -> bool {
        self.stubborn == 0 && self.stuck == 0
    }
}

/// Returns how many threads the machine runs at once.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_soak::Plan as _;

    fn plans() -> impl Iterator<Item = Plan> {
        (0..500).map(Plan::new)
    }

    #[test]
    fn a_seed_repeats_its_plan() {
        let text = |seed| format!("{:?}", Plan::new(seed));
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
    }

    #[test]
    fn every_kind_and_every_number_of_workers_is_drawn() {
        let waves = plans().flat_map(|plan| plan.waves);
        let mut kinds: Vec<Kind> = waves.flat_map(|it| it.jobs).map(|it| it.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut all = Kind::ALL;
        all.sort_unstable();
        assert_eq!(kinds, all);
        let mut workers: Vec<usize> = plans().map(|plan| plan.site.workers).collect();
        workers.sort_unstable();
        workers.dedup();
        let most = MOST_OVERSUBSCRIBED * cores();
        assert_eq!(workers.first(), Some(&1));
        assert!(workers.last() > Some(&(most / 2)) && workers.last() <= Some(&most));
    }

    #[test]
    fn who_never_finishes_is_not_waited_for() {
        for Plan { ending, .. } in plans() {
            let is_patient = ending.deadline_ms == PATIENT_MS;
            assert_eq!(is_patient, ending.is_bound_to_end(), "{ending:?}");
            assert!(is_patient || !ending.by_drop, "{ending:?}");
        }
    }
}
