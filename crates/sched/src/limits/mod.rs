//! Limits of mailboxes: the room of a mailbox, and the senders waiting for room.
//!
//! **Promise.** A mailbox takes no more than its limit, and waiting senders are served in order,
//! until the process ends, the scheduler stops, or their own process is asked to end (P13).
//!
//! **Imports.** The folders from `base` to `handlers` (`docs/ARCHITECTURE.md`).

pub(crate) mod room;
pub(crate) mod rooms;
pub(crate) mod waiters;
pub(crate) mod waiting_steps;
