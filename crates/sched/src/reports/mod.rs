//! The reports of a scheduler: failures that no process sees, dead letters, steps that take long.
//!
//! **Promise.** A report never blocks a worker for the reader of the report. Lines in the log are
//! limited in number.
//!
//! **Imports.** `base`.

pub(crate) mod dead_letters;
pub(crate) mod failures;
pub(crate) mod life;
pub(crate) mod line;
pub(crate) mod long_steps;
pub(crate) mod queue;
pub(crate) mod reporting;
