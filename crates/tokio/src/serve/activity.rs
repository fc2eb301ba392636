//! The activity of a connection, which decides how long it may last.
//!
//! The bytes, the requests and the process of a connection tell it, also from several threads:
//! requests of HTTP/2 are processes of their own.
//!
//! | in the middle of | may stay so for |
//! |---|---|
//! | one request or more | as long as the app takes |
//! | a head (HTTP/1), or no request yet | the time-out of heads |
//! | nothing, after a request | the time-out of idle connections |
//!
//! In HTTP/2, bytes without a request are no head: they may be a ping.

use super::limits::Limits;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// See the head of this file.
#[derive(Clone)]
pub(super) struct Activity(Arc<Mutex<State>>);

struct State {
    /// Requests whose answers are not over.
    requests: usize,
    /// When the head that is being read began; for a new connection, when it came.
    head_since: Option<Instant>,
    /// When the last request was over.
    idle_since: Instant,
    is_http2: bool,
}

/// A request, until its answer is over.
pub(super) struct Request(Activity);

/// When a connection has been in the middle of the same for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// The activity may take any time.
    Endless,
    /// The head must be complete by then.
    Head(Instant),
    /// The next request must begin by then.
    Idle(Instant),
}

/// Returns the time by the clock of the timers that the time-outs wait for.
pub(super) fn now() -> Instant {
    Instant::now()
}

impl Patience {
    /// Limits the patience to `end`.
    pub(super) fn until(self, end: Instant) -> Self {
        match self {
            Self::Endless => Self::Idle(end),
            Self::Head(by) => Self::Head(by.min(end)),
            Self::Idle(by) => Self::Idle(by.min(end)),
        }
    }
}

impl Activity {
    /// Creates the activity of a new connection.
    pub(super) fn new() -> Self {
        let begin = now();
        Self(Arc::new(Mutex::new(State {
            requests: 0,
            head_since: Some(begin),
            idle_since: begin,
            is_http2: false,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes have come.
    pub(super) fn has_read(&self) {
        let mut state = self.state();
        if state.requests == 0 && !state.is_http2 {
            state.head_since.get_or_insert_with(now);
        }
    }

    /// Begins a request whose head is there.
    pub(super) fn begin(&self, is_http2: bool) -> Request {
        let mut state = self.state();
        state.requests += 1;
        state.head_since = None;
        state.is_http2 = is_http2;
        Request(self.clone())
    }

    /// Returns whether some request is not over.
    pub(super) fn has_requests(&self) -> bool {
        self.state().requests > 0
    }

    /// Notes the good-bye of the connection, which may take as long as a head until it is closed.
    pub(super) fn ends(&self) {
        self.state().head_since = Some(now());
    }

    pub(super) fn patience(&self, limits: &Limits) -> Patience {
        let state = self.state();
        // A time-out beyond the clock is none.
        let within = |since: Instant, time| since.checked_add(time);
        let patience = match (state.requests, state.head_since) {
            (0, Some(since)) => within(since, limits.header).map(Patience::Head),
            (0, None) => within(state.idle_since, limits.idle).map(Patience::Idle),
            _ => None,
        };
        patience.unwrap_or(Patience::Endless)
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests -= 1;
        if state.requests == 0 {
            state.idle_since = now();
        }
    }
}
