//! No backtraces: without the feature, and on systems that can't ask a thread for its registers.

use crate::sampler::{Sampler, SamplerError};
use std::io;

/// Refuses backtraces: see [`SamplerError::System`].
///
/// # Errors
/// Always.
pub fn backtraces(
    _: Option<i32>,
    _: usize,
    _: &'static [&'static str],
) -> Result<Box<dyn Sampler>, SamplerError> {
    Err(SamplerError::System(io::ErrorKind::Unsupported.into()))
}
