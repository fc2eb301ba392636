//! What processes register with each other's ends, by exit actions: monitors and names; and the
//! calls of those that keep completers.
//!
//! **What it promises.** A monitor is told of an end once, when the names are free (P12).
//!
//! **What it may import.** The folders from `base` to `send` (`docs/ARCHITECTURE.md`).

pub(crate) mod calls;
pub(crate) mod monitors;
pub(crate) mod naming;
