//! Faults of frames.

use std::time::Duration;

/// Faults of the frames from a node to another. Shares are in thousandths. By default
/// all frames arrive at once, in order.
///
/// ```
/// use ganger_cluster::{Faults, Lane};
///
/// let mut faults = Faults::default();
/// faults.drop[Lane::Data.index()] = 300;
/// faults.repeat = 20;
/// assert_eq!(faults.drop, [0, 300]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Faults {
    /// The share of lost frames, by lane.
    pub drop: [u32; 2],
    /// The share of frames to come twice.
    pub repeat: u32,
    /// The share of late frames, up to [`late`](Self::late), which later frames overtake.
    pub reorder: u32,
    /// How late an overtaken frame comes at most.
    pub late: Duration,
    /// How long each frame is under way at least.
    pub delay: Duration,
    /// A random time on top. Frames stay in order.
    pub jitter: Duration,
    /// How many bytes pass in a second, if limited.
    pub bandwidth: Option<u64>,
    /// How many bytes may be under way before the engine refuses frames.
    pub room: usize,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            drop: [0; 2],
            repeat: 0,
            reorder: 0,
            late: Duration::ZERO,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            bandwidth: None,
            room: usize::MAX,
        }
    }
}

/// Counts of a twin's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Frames sent by nodes.
    pub sent: u64,
    /// Frames received by nodes.
    pub delivered: u64,
    /// Lost frames: by chance, by a cut, or without a node at the end of the way.
    pub lost: u64,
    /// Repeated frames.
    pub repeated: u64,
    /// Frames refused for want of room.
    pub refused: u64,
    /// Frames lost because of their size.
    pub too_large: u64,
}
