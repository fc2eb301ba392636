//! A round: a scheduler from its start to its end, with waves of workloads and its account.

use crate::account::Totals;
use crate::chaos::{self, Targets};
use crate::ending;
use crate::limits;
use crate::plan::{Plan, SitePlan, Wave, cores};
use crate::quiet;
use crate::site::Site;
use crate::watch::Watch;
use crate::workloads::Job;
use fastrand::Rng;
use ganger::WorkerStats;
use ganger_soak::Plan as _;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The counts of rounds.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Tally {
    /// How many rounds.
    pub rounds: u64,
    /// How often there was each workload.
    pub workloads: BTreeMap<&'static str, u64>,
    /// The number of workers of each round.
    pub workers: BTreeMap<usize, u64>,
    /// The accounts of all.
    pub account: Totals,
    /// Steps, by the schedulers' count.
    pub steps: u64,
    /// Steps that blocked, or computed for long, so that a spare came.
    pub relieved: u64,
    /// Processes stopped at a deadline.
    pub forced: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.rounds += other.rounds;
        for (name, count) in other.workloads {
            *self.workloads.entry(name).or_default() += count;
        }
        for (workers, count) in other.workers {
            *self.workers.entry(workers).or_default() += count;
        }
        self.account += other.account;
        self.steps += other.steps;
        self.relieved += other.relieved;
        self.forced += other.forced;
    }
}

impl Tally {
    fn add_stats(&mut self, stats: &WorkerStats) {
        self.steps += stats.steps;
        self.relieved += stats.blocked_steps + stats.long_steps;
        self.forced += stats.forced;
    }

    fn add_wave(&mut self, wave: &Wave) {
        for job in &wave.jobs {
            *self.workloads.entry(job.kind.name()).or_default() += 1;
        }
    }
}

/// Runs the round of a seed.
///
/// # Errors
/// The error, with the round's plan.
pub fn run(seed: u64, watch: &Watch) -> Result<Tally, String> {
    let plan = Plan::new(seed);
    watch.begin(format!("round with seed {seed}: {plan:#?}"));
    run_plan(&plan, watch).map_err(|what| format!("{what}{plan:#?}\n"))
}

fn run_plan(plan: &Plan, watch: &Watch) -> Result<Tally, String> {
    let site = Site::start(&plan.site, watch)?;
    let mut tally = Tally {
        rounds: 1,
        workers: BTreeMap::from([(plan.site.workers, 1)]),
        ..Tally::default()
    };
    for wave in &plan.waves {
        run_wave(&site, watch, wave)?;
        tally.add_wave(wave);
        site.settle(watch)?;
    }
    limits::run(&site, watch, plan.site.max_processes, plan.site.seed)?;
    ending::run(&site, watch, &plan.ending)?;
    let account = Arc::clone(&site.account);
    let stats = site.end(watch)?;
    tally.account += account.totals();
    tally.add_stats(&stats);
    Ok(tally)
}

/// The scheduler that lives as long as the soak, with a wave now and then.
pub struct Veteran(Site);

impl Veteran {
    /// Starts the scheduler.
    ///
    /// # Errors
    /// When the system does not let the scheduler start.
    pub fn start(seed: u64, watch: &Watch) -> Result<Self, String> {
        Site::start(&SitePlan::veteran(seed), watch).map(Self)
    }

    /// Runs a wave, drawn from `seed`.
    ///
    /// # Errors
    /// The error, with the plan of the wave.
    pub fn wave(&self, seed: u64, watch: &Watch) -> Result<Tally, String> {
        let wave = Wave::new(&mut Rng::with_seed(seed));
        watch.begin(format!("a wave of the veteran with seed {seed}: {wave:#?}"));
        let mut tally = Tally::default();
        tally.add_wave(&wave);
        let done = run_wave(&self.0, watch, &wave).and_then(|()| self.0.settle(watch));
        done.map(|()| tally)
            .map_err(|what| format!("{what}{wave:#?}\n"))
    }

    /// Empties the caches of all its workers: each is held in a step until all are.
    ///
    /// # Errors
    /// When a process for it is refused.
    pub(crate) fn empty_caches(&self, watch: &Watch) -> Result<(), String> {
        quiet::empty_caches(&self.0, watch, cores())
    }

    /// Ends the scheduler; its account is in the tally.
    ///
    /// # Errors
    /// The account's error.
    pub fn end(self, watch: &Watch) -> Result<Tally, String> {
        let account = Arc::clone(&self.0.account);
        let stats = self.0.end(watch)?;
        let mut tally = Tally {
            account: account.totals(),
            ..Tally::default()
        };
        tally.add_stats(&stats);
        Ok(tally)
    }
}

/// Runs workloads at the same time, with attacks on them.
pub(crate) fn run_wave(site: &Site, watch: &Watch, wave: &Wave) -> Result<(), String> {
    let (targets, is_over) = (Targets::default(), AtomicBool::new(false));
    let result = thread::scope(|scope| {
        let (targets, is_over) = (&targets, &is_over);
        let drivers: Vec<_> = wave
            .jobs
            .iter()
            .map(|plan| {
                let job = Job::new(site, watch, targets, wave.faults, plan);
                let name = format!("driver-{}", plan.kind.name());
                let driver = thread::Builder::new().name(name);
                driver
                    .spawn_scoped(scope, move || job.run(plan.kind))
                    .map_err(|error| error.to_string())
            })
            .collect();
        if wave.chaos > 0 {
            // Ordering: Relaxed: it only says when to stop.
            let is_over = move || is_over.load(Ordering::Relaxed);
            let (faults, seed, rate) = (wave.faults, wave.chaos_seed, wave.chaos);
            scope.spawn(move || chaos::run(site, targets, faults, rate, seed, is_over));
        }
        let mut result = Ok(());
        for driver in drivers {
            let joined = driver.and_then(|driver| {
                driver
                    .join()
                    .map_err(|panic| format!("a driver: {}\n", ganger_soak::message(&*panic)))
            });
            result = result.and(joined);
        }
        // Ordering: Relaxed: it only ends the attacks.
        is_over.store(true, Ordering::Relaxed);
        result
    });
    site.finish_rest();
    result
}
