//! The promises of the scheduler, as its users see them: in a single program, since each takes
//! seconds to link. Each folder proves a part of `docs/promises`.
//!
//! A test with a process of its own (an allocator, a global subscriber, the threads' affinity)
//! stays in another program.
#![cfg(not(ganger_loom))]

mod blocking;
mod commands;
mod ends;
mod identity;
mod mailbox_limits;
mod messages;
mod monitors;
mod observation;
mod refusals;
mod scheduling;
mod shutdown;
mod starts;
mod support;
mod timers_and_drivers;
