//! The promises of the scheduler, as its users see them: in a single program, since each takes
//! seconds to link. Each folder proves a part of the promises, most of all those named here:
//!
//! | folder | promises |
//! |---|---|
//! | `starts` | P1 |
//! | `commands` | P3, P6, P7, C1 to C4 |
//! | `messages`, `mailbox_limits` | P4, P5, R1 to R4; P13 |
//! | `ends`, `monitors` | P8 to P10, P12, F2 |
//! | `identity` | P11, P16 |
//! | `scheduling`, `blocking` | G1 to G5, G8; G6, G7 |
//! | `timers_and_drivers` | T1 to T6, I1, I2 |
//! | `shutdown` | D1 to D4 |
//! | `refusals` | F1, P14 |
//! | `observation` | P15, V4 to V8, V10, V13, V18, V19 |
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
