//! The settings of a simulated network: its faults, and the names of its sites.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The faults of a simulated network. The default is none: everything arrives at once.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Faults {
    /// The time from a send to its arrival. The bytes of a connection stay in order.
    pub latency: RangeInclusive<Duration>,
    /// Whether reads and writes move only a random part of the bytes.
    pub partial: bool,
    /// The rate of writes that break the connection, in a million.
    pub resets: u32,
    /// The rate of lost UDP packets, in a million.
    pub losses: u32,
    /// The rate of UDP packets with a second copy, in a million.
    pub duplicates: u32,
}

/// The address or path of a simulated socket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Site {
    /// The address of a listener or of a UDP socket.
    Address(SocketAddr),
    /// The path of a listener.
    Path(PathBuf),
}

impl From<SocketAddr> for Site {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl From<&Path> for Site {
    fn from(path: &Path) -> Self {
        Self::Path(path.into())
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            latency: Duration::ZERO..=Duration::ZERO,
            partial: false,
            resets: 0,
            losses: 0,
            duplicates: 0,
        }
    }
}

impl Faults {
    /// Returns faults with up to 20 ms of latency, and partial reads and writes. No connection
    /// breaks, and no packet is lost.
    #[must_use]
    pub fn some() -> Self {
        Self {
            latency: Duration::ZERO..=Duration::from_millis(20),
            partial: true,
            ..Self::default()
        }
    }

    /// Sets the rate of writes that break the connection, in a million.
    #[must_use]
    pub fn resets(self, resets: u32) -> Self {
        Self { resets, ..self }
    }

    /// Sets the rate of lost UDP packets, in a million.
    #[must_use]
    pub fn losses(self, losses: u32) -> Self {
        Self { losses, ..self }
    }

    /// Sets the rate of UDP packets with a second copy, in a million.
    #[must_use]
    pub fn duplicates(self, duplicates: u32) -> Self {
        Self { duplicates, ..self }
    }

    /// Sets the latency.
    #[must_use]
    pub fn latency(self, latency: RangeInclusive<Duration>) -> Self {
        Self { latency, ..self }
    }
}
