//! Faults of a way.

use fastrand::Rng;
use std::time::Duration;

/// A way through a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the side that has connected to the side behind the proxy.
    There,
    /// The opposite.
    Back,
}

impl Way {
    /// Both ways.
    pub const BOTH: [Self; 2] = [Self::There, Self::Back];

    pub(crate) fn index(self) -> usize {
        usize::from(self == Self::Back)
    }
}

/// Faults of a way. By default all bytes pass at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// How long bytes are under way at least.
    pub delay: Duration,
    /// A random time on top. The order stays.
    pub jitter: Duration,
    /// How many bytes pass in a second, if limited.
    pub rate: Option<u64>,
    /// The most bytes of a write, if limited: frames are read in parts.
    pub piece: Option<usize>,
    /// Bytes are taken, and vanish, while the connection stays.
    pub vanishes: bool,
    /// Bytes wait in front of the proxy, as before a program that is stopped.
    pub holds: bool,
    /// The share of lost datagrams, in thousandths.
    pub drop: u32,
    /// The share of repeated datagrams, in thousandths.
    pub repeat: u32,
}

impl Faults {
    pub(crate) fn late(&self, random: &mut Rng) -> Duration {
        self.delay + self.jitter.mul_f64(random.f64())
    }

    /// Returns the time for this number of bytes.
    pub(crate) fn takes(&self, bytes: usize) -> Duration {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.rate.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64(f64::from(bytes) / rate.max(1) as f64)
        })
    }
}

/// Returns whether an event with this share happens.
pub(crate) fn happens(random: &mut Rng, thousandths: u32) -> bool {
    random.u32(0..1000) < thousandths
}
