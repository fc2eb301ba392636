//! Questions to a peer whose life is in doubt, or whose credit is needed.
//!
//! A probe has a number, and its answer has the same. So a late answer to an earlier
//! probe proves nothing.

use super::settings::Settings;
use crate::id::Half;
use ganger_proc_api::Instant;
use std::time::Duration;

/// A peer in doubt: answers from this probe on count, until the deadline.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    from: u64,
    deadline: Instant,
}

/// Why a peer that has not answered counts as gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Gone {
    Vanished,
    Replaced(Option<Half>),
}

#[derive(Debug, Default)]
pub(super) struct Probes {
    /// How many probes have left.
    sent: u64,
    /// When the next leaves, unless at once.
    next_at: Option<Instant>,
    /// How often a stalled lane has waited for its probe.
    patience: u32,
    vanished: Option<Doubt>,
    rival: Option<(Option<Half>, Doubt)>,
    /// When the last probe left, for the round trip.
    last_at: Option<Instant>,
}

impl Probes {
    fn doubt(&mut self, time: Duration, now: Instant) -> Doubt {
        self.next_at = None;
        Doubt {
            from: self.sent + 1,
            deadline: now + time,
        }
    }

    /// Notes a hint of the engine: the peer is gone.
    pub(super) fn vanished(&mut self, settings: &Settings, now: Instant) {
        if self.vanished.is_none() {
            self.vanished = Some(self.doubt(settings.vanished, now));
        }
    }

    /// Notes that another node has the peer's name, with this half if known.
    pub(super) fn rival(&mut self, half: Option<Half>, settings: &Settings, now: Instant) {
        match &mut self.rival {
            Some((known, _)) => *known = half.max(*known),
            None => self.rival = Some((half, self.doubt(settings.rival, now))),
        }
    }

    /// Takes an answer. Returns the half of a rival to refuse, and a sample of the round trip.
    pub(super) fn answered(
        &mut self,
        number: u64,
        now: Instant,
    ) -> (Option<Half>, Option<Duration>) {
        let counts = |doubt: Doubt| number >= doubt.from;
        if self.vanished.is_some_and(counts) {
            self.vanished = None;
        }
        let rival = self.rival.take_if(|(_, doubt)| counts(*doubt));
        let last_at = self.last_at.take_if(|_| number == self.sent);
        (rival.and_then(|(half, _)| half), last_at.map(|at| now - at))
    }

    pub(super) fn gone(&self, now: Instant) -> Option<Gone> {
        if self.vanished.is_some_and(|it| now >= it.deadline) {
            return Some(Gone::Vanished);
        }
        let rival = self.rival.filter(|(_, doubt)| now >= doubt.deadline);
        rival.map(|(half, _)| Gone::Replaced(half))
    }

    /// Returns when a probe leaves.
    fn at(&self, is_stalled: bool) -> Option<Instant> {
        let is_needed = is_stalled || self.vanished.is_some() || self.rival.is_some();
        is_needed.then(|| self.next_at.unwrap_or(Instant::from_nanos(0)))
    }

    /// Returns when a probe leaves, or a peer counts as gone.
    pub(super) fn deadline(&self, is_stalled: bool) -> Option<Instant> {
        let vanished = self.vanished.map(|it| it.deadline);
        let rival = self.rival.map(|(_, it)| it.deadline);
        let all = [self.at(is_stalled), vanished, rival];
        all.into_iter().flatten().min()
    }

    /// Returns the number of the probe to leave now. A stalled lane asks after the time-out, and
    /// later after twice as long each time, up to a heartbeat.
    pub(super) fn next(
        &mut self,
        is_stalled: bool,
        timeout: Duration,
        settings: &Settings,
        now: Instant,
    ) -> Option<u64> {
        if !is_stalled {
            self.patience = 0;
        } else if self.patience == 0 {
            self.patience = 1;
            if self.vanished.is_none() && self.rival.is_none() {
                self.next_at = Some(now + timeout);
            }
        }
        let at = self.at(is_stalled)?;
        if now < at {
            return None;
        }
        let wait = timeout.saturating_mul(1 << self.patience.min(16));
        if is_stalled {
            self.patience = self.patience.saturating_add(1);
        }
        self.next_at = Some(now + wait.min(settings.heartbeat));
        self.sent += 1;
        self.last_at = Some(now);
        Some(self.sent)
    }
}
