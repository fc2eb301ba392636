//! Names of nodes, runs of a node, and sides of a session.

use ganger_sync::atomic::{AtomicU64, Ordering};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// The most bytes in the name of a node or of a cluster.
pub const MAX_NAME: usize = 255;

/// The name of a node, from 1 to [`MAX_NAME`] bytes long. A clone is cheap.
///
/// ```
/// use ganger_cluster::NodeId;
///
/// let alpha = NodeId::new("alpha")?;
/// assert_eq!(alpha.as_str(), "alpha");
/// assert!(NodeId::new("").is_err());
/// # Ok::<(), ganger_cluster::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(Arc<str>);

/// A text is not a name of a node: empty, or longer than [`MAX_NAME`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a name of {0} bytes; it must have 1 to {MAX_NAME}")]
pub struct NameError(usize);

impl NodeId {
    /// Checks the length of a name.
    ///
    /// # Errors
    ///
    /// The name is empty, or too long.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, NameError> {
        let name = name.into();
        match name.len() {
            1..=MAX_NAME => Ok(Self(name)),
            length => Err(NameError(length)),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// A run of a node. Each start of the same node has a greater incarnation. It rises in the run
/// where a peer knows a greater incarnation, as after a clock was set back.
///
/// ```
/// use ganger_cluster::Incarnation;
///
/// let before = Incarnation::new(1_700_000_000_000, 7);
/// let after_a_clock_set_back = Incarnation::new(1_600_000_000_000, 9);
/// assert!(after_a_clock_set_back.above(before) > before);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(u64);

impl Incarnation {
    /// Creates the incarnation of a start at this time, with a random number for starts in the same
    /// millisecond.
    #[must_use]
    pub const fn new(unix_millis: u64, random: u16) -> Self {
        Self(unix_millis << 16 | random as u64)
    }

    /// Returns the incarnation with this number.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the number of the incarnation.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns this incarnation if it is greater than `other`, else the next after `other`. A node
    /// takes the result when a peer knows a greater incarnation of its name, as after a clock was
    /// set back.
    #[must_use]
    pub fn above(self, other: Self) -> Self {
        self.max(Self(other.0.saturating_add(1)))
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

/// The name of a session at one of its two sides. No node uses the same half twice.
///
/// Halves of a node grow, over all its incarnations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Half {
    /// The run of the node.
    pub incarnation: Incarnation,
    /// From 1, within the incarnation.
    pub number: u32,
}

/// The farthest that a node's incarnation rises at once: a year.
const MOST_RISE: u64 = (365 * 24 * 60 * 60 * 1000) << 16;

/// The source of all halves of a node's incarnation, shared by its sessions.
#[derive(Debug)]
pub struct Halves {
    incarnation: AtomicU64,
    used: AtomicU64,
}

impl Halves {
    /// Creates the source of halves, of which a node has a single in each of its incarnations.
    #[must_use]
    pub fn new(incarnation: Incarnation) -> Arc<Self> {
        let (incarnation, used) = (AtomicU64::new(incarnation.to_bits()), AtomicU64::new(0));
        Arc::new(Self { incarnation, used })
    }

    /// Returns the incarnation of the halves to come.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        // Ordering: only the number counts; frames carry it to the peer.
        Incarnation::from_bits(self.incarnation.load(Ordering::Relaxed))
    }

    /// Raises the incarnation of later halves above `newest` of a peer: the clock of this node was
    /// set back. False: `newest` is more than a year ahead, and is not believed.
    pub fn rise_above(&self, newest: Incarnation) -> bool {
        let present = self.incarnation();
        let is_near = newest.to_bits().saturating_sub(present.to_bits()) <= MOST_RISE;
        if is_near {
            let above = present.above(newest).to_bits();
            // Ordering: only the number counts; frames carry it to the peer.
            self.incarnation.fetch_max(above, Ordering::Relaxed);
        }
        is_near
    }

    /// Returns a half without a use so far.
    ///
    /// # Panics
    ///
    /// After 2^32 sessions of an incarnation.
    pub(crate) fn fresh(&self) -> Half {
        // Ordering: only the number counts; frames carry it to the peer.
        let used = self.used.fetch_add(1, Ordering::Relaxed);
        let number = u32::try_from(used + 1).expect("an incarnation has less than 2^32 sessions");
        Half {
            incarnation: self.incarnation(),
            number,
        }
    }
}

/// A class of messages of a session. Each lane is FIFO; `Control` overtakes `Data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Notices, monitors, cancellations: small, and not stalled by a slow receiver.
    Control,
    /// Messages of users, under the receiver's credit.
    Data,
}

impl Lane {
    /// Both, the first to be served first.
    pub const ALL: [Self; 2] = [Self::Control, Self::Data];

    /// Returns the place of the lane in an array for both.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // pins: B7
    #[test]
    fn halves_rise_above_what_a_peer_knows_but_not_by_years() {
        let at = |millis| Incarnation::new(millis, 7);
        let halves = Halves::new(at(1_700_000_000_000));
        let first = halves.fresh();
        assert!(halves.rise_above(at(1_700_000_003_000)));
        let second = halves.fresh();
        assert!(second > first && second.incarnation > at(1_700_000_003_000));
        // Another peer knows less.
        assert!(halves.rise_above(at(1_700_000_001_000)));
        assert_eq!(halves.fresh().incarnation, second.incarnation);
        assert!(!halves.rise_above(Incarnation::from_bits(u64::MAX)));
        assert_eq!(halves.incarnation(), second.incarnation);
    }
}
