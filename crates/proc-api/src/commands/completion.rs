//! The answer to a yield.

use super::{CommandError, Tag};
use crate::values::Payload;

/// The answer to one yield.
#[derive(Debug)]
pub struct Completion {
    /// The tag that the process gave the yield.
    pub tag: Tag,
    /// The command's result.
    pub result: Result<Payload, CommandError>,
    token: u64,
}

impl Completion {
    /// The answer to a yield with that tag, for unit tests of processes.
    #[must_use]
    pub fn new(tag: Tag, result: Result<Payload, CommandError>) -> Self {
        Self::of(tag, 0, result)
    }

    /// The answer to the yield that `token` names; for schedulers.
    #[must_use]
    #[inline]
    pub fn of(tag: Tag, token: u64, result: Result<Payload, CommandError>) -> Self {
        Self { tag, result, token }
    }

    /// The number by which the scheduler knows the yield; for schedulers.
    #[must_use]
    #[inline]
    pub fn token(&self) -> u64 {
        self.token
    }
}
