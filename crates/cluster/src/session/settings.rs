//! The settings of sessions.

use crate::wire::MAX_FRAME;
use std::time::Duration;

/// The least length of a frame.
const LEAST_FRAME: usize = 256;

/// The greatest credit and window.
const MOST: usize = 1 << 30;

/// The shortest and the longest time.
const TIMES: [Duration; 2] = [
    Duration::from_millis(3),
    Duration::from_secs(365 * 24 * 60 * 60),
];

/// The number of heartbeats in the time after which a silent peer is gone.
const BEATS: u32 = 3;

/// Times and sizes of a session. Values out of range are replaced by the nearest in range. Times
/// are from 3 ms to a year.
///
/// ```
/// use ganger_cluster::Settings;
/// use std::time::Duration;
///
/// let mut settings = Settings::default();
/// settings.dead = Duration::from_secs(3);
/// assert_eq!(settings.window, 1 << 20);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// A silent side sends a heartbeat after this time. 1 s, and at most a third of
    /// [`dead`](Self::dead), which all nodes should have alike.
    pub heartbeat: Duration,
    /// A session ends when nothing was heard for this time, or when frames were not acknowledged
    /// for it. 7 s.
    pub dead: Duration,
    /// How long a peer has to answer after its engine has lost it. 300 ms.
    pub vanished: Duration,
    /// How long a peer has to answer when another node says that it has the peer's name. 1 s.
    pub rival: Duration,
    /// The least time until a frame is sent again. 20 ms.
    pub least_timeout: Duration,
    /// The time until a frame is sent again while no round trip has been measured. 100 ms.
    pub first_timeout: Duration,
    /// Bytes in flight in each lane: sent, and not acknowledged. 1 MiB.
    pub window: usize,
    /// Bytes in the queue of each lane. 4 MiB.
    pub queue: usize,
    /// Bytes of data that this side takes before they are consumed. At least 64 KiB; 1 MiB.
    pub credit: usize,
    /// The largest sent frame, from 256 bytes to 64 KiB, the default.
    pub frame: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(1),
            dead: Duration::from_secs(7),
            vanished: Duration::from_millis(300),
            rival: Duration::from_secs(1),
            least_timeout: Duration::from_millis(20),
            first_timeout: Duration::from_millis(100),
            window: 1 << 20,
            queue: 4 << 20,
            credit: 1 << 20,
            frame: MAX_FRAME,
        }
    }
}

impl Settings {
    pub(super) fn in_range(mut self) -> Self {
        self.frame = self.frame.clamp(LEAST_FRAME, MAX_FRAME);
        self.credit = self.credit.clamp(MAX_FRAME, MOST);
        self.window = self.window.min(MOST);
        let [least, most] = TIMES;
        for time in [
            &mut self.heartbeat,
            &mut self.dead,
            &mut self.vanished,
            &mut self.rival,
            &mut self.least_timeout,
            &mut self.first_timeout,
        ] {
            *time = (*time).clamp(least, most);
        }
        self.heartbeat = self.heartbeat.min(self.dead / BEATS);
        self
    }
}
