//! Refusals, for the log and for the program.

use crate::refusal::{Reason, Refused};
use ganger_proc_api::Instant;
use ganger_sync::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::time::Duration;

/// How many refusals are kept.
const KEPT: usize = 32;
/// Refusals of the same kind are logged once in this time.
const PAUSE: Duration = Duration::from_secs(10);

/// The last refusals.
#[derive(Debug, Default)]
pub(crate) struct Reports(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    last: VecDeque<Refused>,
    logged: Vec<Logged>,
}

/// A kind of refusals that was logged.
#[derive(Debug)]
struct Logged {
    reason: Reason,
    by_peer: bool,
    at: Instant,
    /// Since then.
    left_out: u64,
}

impl Reports {
    pub(crate) fn add(&self, refused: Refused, now: Instant) {
        if refused.reason == Reason::Duplicate {
            tracing::debug!(target: "ganger::direct", "{refused}");
            return;
        }
        let mut inner = lock(&self.0);
        let left_out = inner.is_due(&refused, now);
        inner.last.push_back(refused.clone());
        if inner.last.len() > KEPT {
            inner.last.pop_front();
        }
        drop(inner);
        // Anything may connect for a moment.
        let is_quiet = refused.reason == Reason::Unfinished;
        match left_out {
            Some(left_out) if !is_quiet => {
                tracing::warn!(target: "ganger::direct", left_out, "{refused}");
            }
            _ => tracing::debug!(target: "ganger::direct", "{refused}"),
        }
    }

    /// The last refusals, the oldest first.
    pub(crate) fn last(&self) -> Vec<Refused> {
        lock(&self.0).last.iter().cloned().collect()
    }
}

impl Inner {
    /// Whether a refusal is to be logged, and how many of its kind were not.
    fn is_due(&mut self, refused: &Refused, now: Instant) -> Option<u64> {
        let mut logged = self.logged.iter_mut();
        let same = |it: &&mut Logged| it.reason == refused.reason && it.by_peer == refused.by_peer;
        let Some(logged) = logged.find(same) else {
            // As many as reasons at the most, twice.
            self.logged.push(Logged {
                reason: refused.reason,
                by_peer: refused.by_peer,
                at: now,
                left_out: 0,
            });
            return Some(0);
        };
        if now < logged.at + PAUSE {
            logged.left_out += 1;
            return None;
        }
        logged.at = now;
        Some(std::mem::take(&mut logged.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_logged_once_in_a_while_and_counted() {
        let reports = Reports::default();
        let refused = |reason| Refused::new("127.0.0.1:1".parse().unwrap(), None, reason, false);
        let at = |seconds| Instant::from_nanos(0) + Duration::from_secs(seconds);
        let is_due = |reason, seconds| {
            let due = lock(&reports.0).is_due(&refused(reason), at(seconds));
            reports.add(refused(reason), at(seconds));
            due
        };
        assert_eq!(is_due(Reason::Cookie, 0), Some(0));
        // The look has counted, too.
        assert_eq!(is_due(Reason::Cookie, 9), None);
        assert_eq!(is_due(Reason::Cluster, 9), Some(0));
        assert_eq!(is_due(Reason::Cookie, 10), Some(3));
        for _ in 0..2 * KEPT {
            reports.add(refused(Reason::Cookie), at(11));
        }
        assert_eq!(reports.last().len(), KEPT);
    }
}
