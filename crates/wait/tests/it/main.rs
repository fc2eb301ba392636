//! Waiters, and locked queues of waiters.
#![allow(missing_docs)]

mod loom_waiter;
#[cfg(not(ganger_loom))]
mod until;
#[cfg(not(ganger_loom))]
mod waiter;
#[cfg(not(ganger_loom))]
mod yields;
