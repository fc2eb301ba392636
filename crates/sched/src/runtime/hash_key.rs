//! A key for hashes that lead to a place, such as a worker or a member of a group.
//!
//! An attacker with knowledge of the hash chooses keys that all meet in one place.

use crate::probe::{Decide, Decider};
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};

/// Hashes with a key unknown to attackers. For crates built on the scheduler.
#[derive(Debug, Clone, Copy)]
pub struct HashKey(u64);

impl HashKey {
    /// Draws another key each time; in a simulation always the same key, so that a run can be
    /// repeated.
    #[must_use]
    pub fn random() -> Self {
        match Decider::choose("hash key", 1) {
            Some(_) => Self(0),
            None => Self(RandomState::new().hash_one(())),
        }
    }

    /// Returns the hash of a value.
    #[must_use]
    pub fn hash(self, value: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.0, value).hash(&mut hasher);
        hasher.finish()
    }
}
