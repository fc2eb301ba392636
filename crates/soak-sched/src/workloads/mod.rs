//! The workloads: the processes, and the drivers outside of them.
//!
//! A driver has a thread of its own. The driver returns when the processes of its waits have ended;
//! its other processes end by themselves.

mod blocking;
mod commands;
mod fan_in;
mod fan_out;
mod mesh;
mod ring;
mod storm;
mod timers;
mod trees;

use crate::actor::{Behaviour, Kit};
use crate::chaos::Targets;
use crate::faults::Faults;
use crate::plan::{JobPlan, Kind};
use crate::site::Site;
use crate::watch::Watch;
use fastrand::Rng;
use ganger::{Pid, ProcessHandle};
use std::sync::{Arc, OnceLock};

/// The tools of a driver.
pub(crate) struct Job<'a> {
    pub(crate) site: &'a Site,
    pub(crate) watch: &'a Watch,
    pub(crate) targets: &'a Targets,
    pub(crate) kit: Kit,
    pub(crate) random: Rng,
    pub(crate) size: usize,
}

impl<'a> Job<'a> {
    pub(crate) fn new(
        site: &'a Site,
        watch: &'a Watch,
        targets: &'a Targets,
        faults: Faults,
        plan: &JobPlan,
    ) -> Self {
        Self {
            site,
            watch,
            targets,
            kit: site.kit(faults),
            random: Rng::with_seed(plan.seed),
            size: plan.size,
        }
    }

    /// Runs the workload.
    pub(crate) fn run(self, kind: Kind) {
        match kind {
            Kind::Mesh => mesh::run(self),
            Kind::Ring => ring::run(self),
            Kind::FanIn => fan_in::run(self),
            Kind::FanOut => fan_out::run(self),
            Kind::Storm => storm::run(self),
            Kind::Commands => commands::run(self),
            Kind::Blocking => blocking::run(self),
            Kind::Timers => timers::run(self),
            Kind::Trees => trees::run(self),
        }
    }

    /// Submits `count` processes, each of which must start.
    fn submit<B: Behaviour>(
        &mut self,
        count: usize,
        kit: &Kit,
        behaviour: impl Fn(usize) -> B,
    ) -> Vec<ProcessHandle> {
        let (site, random) = (self.site, &mut self.random);
        (0..count)
            .map(|nth| site.submit_surely(kit, random, || behaviour(nth)))
            .collect()
    }

    fn until_all_parcels_are_gone(&self) {
        let account = &self.site.account;
        self.watch
            .until("no parcel is on its way", || account.on_their_way() == 0);
    }
}

/// The processes of a workload, once all of them are known.
type Members = Arc<OnceLock<Vec<Pid>>>;

fn pids(handles: &[ProcessHandle]) -> Vec<Pid> {
    handles.iter().map(ProcessHandle::pid).collect()
}
