//! Refusals, for the log and for the program. Repeated refusals of peers and strangers are logged
//! once in a while.

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

/// A kind of lines in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Refusal {
        reason: Reason,
        by_peer: bool,
    },
    /// A silent connection is closed.
    Silent,
    /// A connection can't be accepted.
    NoAccept,
    /// The scheduler starts no process.
    NoProcess,
}

/// A logged kind.
#[derive(Debug)]
struct Logged {
    what: Said,
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
        let what = Said::Refusal {
            reason: refused.reason,
            by_peer: refused.by_peer,
        };
        let left_out = inner.is_due(what, now);
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

    /// Returns how many lines of this kind were left out, if the next may be logged now.
    pub(crate) fn may_say(&self, what: Said, now: Instant) -> Option<u64> {
        lock(&self.0).is_due(what, now)
    }

    /// Returns the last refusals, the oldest first.
    pub(crate) fn last(&self) -> Vec<Refused> {
        lock(&self.0).last.iter().cloned().collect()
    }
}

impl Inner {
    /// Returns how many lines of this kind were left out, if the next may be logged now.
    fn is_due(&mut self, what: Said, now: Instant) -> Option<u64> {
        let mut logged = self.logged.iter_mut();
        let Some(logged) = logged.find(|it| it.what == what) else {
            // As many as reasons at the most, twice.
            self.logged.push(Logged {
                what,
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
            let what = Said::Refusal {
                reason,
                by_peer: false,
            };
            let due = reports.may_say(what, at(seconds));
            reports.add(refused(reason), at(seconds));
            due
        };
        assert_eq!(is_due(Reason::Cookie, 0), Some(0));
        // The look has counted, too.
        assert_eq!(is_due(Reason::Cookie, 9), None);
        assert_eq!(is_due(Reason::Cluster, 9), Some(0));
        assert_eq!(is_due(Reason::Cookie, 10), Some(3));
        assert_eq!(reports.may_say(Said::Silent, at(10)), Some(0));
        assert_eq!(reports.may_say(Said::Silent, at(11)), None);
        for _ in 0..2 * KEPT {
            reports.add(refused(Reason::Cookie), at(11));
        }
        assert_eq!(reports.last().len(), KEPT);
    }
}
