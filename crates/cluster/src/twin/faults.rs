//! What may happen to frames.

use std::time::Duration;

/// What happens to the frames of a way from node to node. Shares are in thousandths. By default
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
    /// The share of frames that are lost, by lane.
    pub drop: [u32; 2],
    /// The share of frames that come twice.
    pub repeat: u32,
    /// The share of frames that come late, up to [`late`](Self::late), and are overtaken.
    pub reorder: u32,
    /// How late an overtaken frame comes at most.
    pub late: Duration,
    /// How long each frame is under way at least.
    pub delay: Duration,
    /// A random time on top. Frames stay in order.
    pub jitter: Duration,
    /// How many bytes pass in a second, if there is a limit.
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

/// What a twin has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Frames that nodes have sent.
    pub sent: u64,
    /// Frames that nodes have got.
    pub delivered: u64,
    /// Frames that were lost: by chance, by a cut, or because no node was there.
    pub lost: u64,
    /// Frames that were repeated.
    pub repeated: u64,
    /// Frames that were refused for want of room.
    pub refused: u64,
    /// Frames that were lost because they were larger than the twin carries.
    pub too_large: u64,
}
