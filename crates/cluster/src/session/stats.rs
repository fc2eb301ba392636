//! The figures of a session, for observers.

use crate::id::Half;
use std::time::Duration;

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No session is wanted.
    Down,
    /// The peer has not answered yet.
    Opening,
    /// The peer has answered.
    Up,
}

/// Figures of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The state.
    pub state: State,
    /// The own half, unless the session is down.
    pub session: Option<Half>,
    /// The smoothed round trip, once measured.
    pub round_trip: Option<Duration>,
    /// Bytes in the queue, by lane.
    pub queued: [usize; 2],
    /// Bytes sent and not acknowledged, by lane.
    pub unacknowledged: [usize; 2],
    /// How many frames with messages this session and those before have sent, by lane. A repeated
    /// frame counts once.
    pub frames: [u64; 2],
    /// How many frames of this session and those before were sent again, by lane.
    pub resent: [u64; 2],
}
