//! What processes register with each other's ends, by exit actions: monitors and names; and the
//! calls of those that keep completers.
//!
//! **What it promises.** A monitor is told of an end once, when the names are free (P12).
//!
//! **What it may import.** `base`, `handlers`, `limits`, `process`, `progress`, `queues`, `core`,
//! `send`.

pub(crate) mod calls;
pub(crate) mod monitors;
pub(crate) mod naming;
