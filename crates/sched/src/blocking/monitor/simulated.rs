//! The monitor without a thread: it looks on request, by the simulation's clock.

use super::Monitor;
use crate::base::clock::Clock;
use crate::policy::QUIET;
use crate::probe::Probe;
use crate::runtime::shared::Shared;
use crate::sim::moves::Did;
use std::sync::Arc;
use std::time::Duration;

enum Phase {
    /// Until this time.
    Naps(Duration),
    /// Until this time, if given.
    Dozes(Option<Duration>),
}

pub(crate) struct Simulated<'a, C> {
    monitor: Monitor<'a, C>,
    phase: Phase,
}

impl<'a, C: Clock> Simulated<'a, C> {
    pub(crate) fn new(shared: &'a Arc<Shared>, clock: C) -> Self {
        Self {
            monitor: Monitor::new(shared, clock),
            phase: Phase::Naps(Duration::ZERO),
        }
    }

    /// Returns whether the monitor has a move at this time.
    pub(crate) fn can_move(&self) -> bool {
        if self.is_gone() {
            return false;
        }
        self.monitor.shared.queues.idle.monitor_parker().has_token()
            || self
                .next_look()
                .is_some_and(|next| next <= self.monitor.clock.now())
    }

    /// Returns when the monitor looks next, if not only after a wake-up.
    pub(crate) fn next_look(&self) -> Option<Duration> {
        match self.phase {
            Phase::Naps(until) | Phase::Dozes(Some(until)) if !self.is_gone() => Some(until),
            _ => None,
        }
    }

    /// Returns whether the monitor's thread would have ended.
    fn is_gone(&self) -> bool {
        self.monitor.shared.shutdown.is_halted()
    }

    /// Makes its next move, if it has a move at this time.
    pub(crate) fn advance(&mut self) -> Did {
        if self.is_gone() {
            return Did::Nothing;
        }
        let shared = self.monitor.shared;
        let now = self.monitor.clock.now();
        let parker = shared.queues.idle.monitor_parker();
        let is_woken = parker.has_token();
        if is_woken {
            parker.park();
        }
        match self.phase {
            Phase::Naps(until) if now < until && !is_woken => Did::Nothing,
            Phase::Naps(_) => {
                self.monitor.look();
                if self.monitor.quiet < QUIET {
                    self.phase = Phase::Naps(now.saturating_add(self.monitor.interval));
                    Did::Watched
                } else {
                    shared.probe.watching();
                    shared
                        .queues
                        .idle
                        .announce_monitor_sleep(|| self.monitor.has_to_stay_awake());
                    shared.probe.dozing();
                    let until = self.monitor.dozes_until().map(Duration::from_nanos);
                    self.phase = Phase::Dozes(until);
                    Did::Dozed
                }
            }
            Phase::Dozes(until) if is_woken || until.is_some_and(|until| until <= now) => {
                shared.queues.idle.monitor_watches();
                self.monitor.begin_to_watch();
                self.phase = Phase::Naps(now.saturating_add(self.monitor.interval));
                Did::Roused
            }
            Phase::Dozes(_) => Did::Nothing,
        }
    }
}
