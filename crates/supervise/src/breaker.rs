//! A circuit breaker: rejects calls for a while after repeated failures.
//!
//! **Protocol.** The breaker is closed at first: it admits all calls, and counts the failures in a
//! row. At the limit it opens: it rejects all calls until a wait is over. Then it admits a single
//! call, the probe. If the probe succeeds, the breaker closes. If the probe fails, the breaker
//! opens again, for a longer wait.
//!
//! Each opening and closing begins a new epoch. The result of a call from an earlier epoch does not
//! count, nor does an attempt dropped without a result. After a dropped probe the breaker admits
//! another probe.

use crate::plan::BackOff;
use ganger_sched::Instant;
use ganger_sync::sync::{Mutex, lock};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The shortest wait of callers that are rejected during a probe.
const SOON: Duration = Duration::from_millis(1);

/// A circuit breaker rejects calls for a while after repeated failures, of an overloaded service
/// for example. Clones are the same breaker.
///
/// ```
/// use ganger_sched::Instant;
/// use ganger_supervise::Breaker;
/// use std::time::Duration;
///
/// // It opens after two failures in a row: for a second, then for two, and so on.
/// let breaker = Breaker::new(2, Duration::from_secs(1));
/// let now = Instant::from_nanos(0); // A process has `ctx.now()`.
/// for _ in 0..2 {
///     breaker.admit(now).unwrap().failed(now);
/// }
/// assert!(breaker.admit(now).is_err());
/// let later = now.after(Duration::from_secs(2));
/// breaker.admit(later).unwrap().succeeded();
/// assert!(!breaker.is_open());
/// ```
#[derive(Clone)]
pub struct Breaker {
    inner: Arc<Inner>,
}

struct Inner {
    most: u32,
    back_off: BackOff,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    epoch: u64,
    /// Closed: the failures in a row.
    failures: u32,
    /// The openings in a row.
    opened: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Closed,
    Open(Instant),
    /// A probe is under way.
    Probed(Instant),
}

/// The breaker is open, and rejects the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the circuit breaker is open: calls are rejected for a while after repeated failures")]
#[non_exhaustive]
pub struct BreakerOpen {
    /// The time of the next try, always in the future. During a probe the time is `now` plus the
    /// first wait of the breaker.
    pub until: Instant,
}

/// The right to try once. The caller reports the result: [`succeeded`](Self::succeeded) or
/// [`failed`](Self::failed).
#[must_use = "a try that says nothing of its result does not count"]
pub struct Attempt {
    breaker: Breaker,
    epoch: u64,
}

impl Breaker {
    /// Creates a breaker that opens after `failures` failures in a row, from 1 up. The breaker
    /// waits as the [`BackOff`] says, without the stable time.
    pub fn new(failures: u32, wait: impl Into<BackOff>) -> Self {
        let state = State {
            phase: Phase::Closed,
            epoch: 0,
            failures: 0,
            opened: 0,
        };
        let inner = Inner {
            most: failures.max(1),
            back_off: wait.into(),
            state: Mutex::new(state),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Gives the right to try now. Never blocks. O(1).
    ///
    /// # Errors
    /// [`BreakerOpen`] while the breaker is open, and during a probe.
    pub fn admit(&self, now: Instant) -> Result<Attempt, BreakerOpen> {
        let mut state = lock(&self.inner.state);
        match state.phase {
            Phase::Open(until) if until <= now => state.phase = Phase::Probed(until),
            Phase::Open(until) => return Err(BreakerOpen { until }),
            Phase::Probed(_) => {
                let wait = self.inner.back_off.without_jitter(0).max(SOON);
                let until = now.after(wait);
                return Err(BreakerOpen { until });
            }
            Phase::Closed => {}
        }
        Ok(Attempt {
            breaker: self.clone(),
            epoch: state.epoch,
        })
    }

    /// Returns whether the breaker is open, or a probe is under way.
    #[must_use]
    pub fn is_open(&self) -> bool {
        lock(&self.inner.state).phase != Phase::Closed
    }
}

impl Attempt {
    /// Notes that the attempt has succeeded.
    pub fn succeeded(self) {
        self.over(|state, _| {
            state.failures = 0;
            if state.phase != Phase::Closed {
                state.phase = Phase::Closed;
                state.opened = 0;
                state.epoch += 1;
            }
        });
    }

    /// Notes that the attempt has failed, at this time.
    pub fn failed(self, now: Instant) {
        self.over(|state, breaker| {
            state.failures += 1;
            if state.phase == Phase::Closed && state.failures < breaker.most {
                return;
            }
            // Any number from 0 to 1 will do.
            let chance = (now.as_nanos() % 1_000) as f64 / 999.0;
            let wait = breaker.back_off.wait(state.opened, chance);
            state.phase = Phase::Open(now.after(wait));
            state.opened = state.opened.saturating_add(1);
            state.failures = 0;
            state.epoch += 1;
        });
    }

    /// Notes the result of the attempt, if it belongs to this epoch.
    fn over(&self, say: impl FnOnce(&mut State, &Inner)) {
        let inner = &self.breaker.inner;
        let mut state = lock(&inner.state);
        if state.epoch == self.epoch {
            say(&mut state, inner);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.over(|state, _| {
            if let Phase::Probed(until) = state.phase {
                state.phase = Phase::Open(until);
            }
        });
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("is_open", &self.is_open())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attempt").field(&self.breaker).finish()
    }
}
