//! The answer to a yield.

use super::{CommandError, Tag};
use crate::values::Payload;

/// The answer to a yield.
#[derive(Debug)]
pub struct Completion {
    /// The process's tag of the yield.
    pub tag: Tag,
    /// The command's result.
    pub result: Result<Payload, CommandError>,
    token: u64,
}

impl Completion {
    /// Makes an answer with this tag, for unit tests of processes.
    #[must_use]
    pub fn new(tag: Tag, result: Result<Payload, CommandError>) -> Self {
        Self::of(tag, 0, result)
    }

    /// Makes the answer to the yield with this token; for schedulers.
    #[must_use]
    #[inline]
    pub fn of(tag: Tag, token: u64, result: Result<Payload, CommandError>) -> Self {
        Self { tag, result, token }
    }

    /// Returns the scheduler's number of the yield; for schedulers.
    #[must_use]
    #[inline]
    pub fn token(&self) -> u64 {
        self.token
    }
}
