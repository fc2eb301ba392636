//! Exit actions between processes: monitors and names; and calls for the holders of completers.
//!
//! **Promise.** A monitor is notified of an end once, when the names are free (P12).
//!
//! **Imports.** The folders from `base` to `send` (`docs/ARCHITECTURE.md`).

pub(crate) mod calls;
pub(crate) mod monitors;
pub(crate) mod naming;
