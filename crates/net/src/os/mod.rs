//! The rest of the operating system: files, signals and child processes.

#[cfg(unix)]
pub(crate) mod child;
pub mod fs;
#[cfg(unix)]
#[allow(unsafe_code, reason = "a signal calls an action of this crate")]
pub(crate) mod signal;
