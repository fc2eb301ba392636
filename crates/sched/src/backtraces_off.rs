//! What is left of `backtraces` without the feature, or on a system that has none: a refusal.

use crate::config::{BuildError, Config};
use std::io;
use std::sync::Arc;

pub(crate) enum Backtraces {}

impl Backtraces {
    pub(crate) fn new(config: &Config, _: usize) -> Result<Option<Self>, BuildError> {
        match (config.long_step_backtraces, config.backtrace_signal) {
            (false, _) => Ok(None),
            (true, _) => Err(BuildError::Backtraces(io::ErrorKind::Unsupported.into())),
        }
    }

    pub(crate) fn enter(&self, _: usize) {
        match *self {}
    }

    pub(crate) fn of(
        &self,
        _: usize,
        _: impl Fn() -> bool,
        _: impl FnOnce(&dyn Fn(u32) -> bool) -> bool,
    ) -> Option<Arc<str>> {
        match *self {}
    }
}
