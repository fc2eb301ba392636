//! Limits of mailboxes: the room of one mailbox, and the senders that wait for room.
//!
//! **What it promises.** A mailbox takes no more than its limit, and senders that wait are served
//! in order, until the process ends, the scheduler stops, or their own process is to end (P13).
//!
//! **What it may import.** The folders from `base` to `handlers` (`docs/ARCHITECTURE.md`).

pub(crate) mod room;
pub(crate) mod rooms;
pub(crate) mod waiters;
pub(crate) mod waiting_steps;
