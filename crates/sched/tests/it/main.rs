//! The promises of the scheduler, as its users see them: in a single program, since each takes
//! seconds to link.
//!
//! A test with a process of its own (an allocator, a global subscriber, the threads' affinity)
//! stays in another program.
#![cfg(not(ganger_loom))]

mod support;

mod accepted;
mod accounts;
mod answers;
mod blocking;
mod calls;
mod cancelling;
mod catching_up;
#[cfg(feature = "check")]
mod checked;
mod closed;
mod commands;
mod crowd;
mod depth;
mod destructors;
mod driver;
mod dump;
mod ending;
mod errors;
mod events;
mod exit_actions;
mod fairness;
mod far_addresses;
mod hand_off;
mod handles;
mod inherited;
#[cfg(feature = "observe")]
mod inspected;
mod kept;
mod lanes;
mod last_commands;
mod limits;
mod lots;
mod monitors;
mod names;
mod not_started;
mod notices;
#[cfg(feature = "observe")]
mod observed;
mod on_end;
mod overload;
mod own_limits;
mod pressure;
mod restarts;
mod reuse;
mod room_behind_routers;
mod routing;
mod scheduling;
mod send_all;
mod shutdown;
mod signals;
mod spares;
mod spawners;
mod standard;
mod start;
mod started_in_a_stop;
mod stop_report;
mod stopping;
mod stopping_inside;
mod stress;
mod stuck_close;
#[cfg(feature = "observe")]
mod suspended;
mod system_send;
mod taking;
mod taking_back;
mod talking_init;
mod thread_locals;
mod timers;
#[cfg(feature = "observe")]
mod traced;
mod turns;
mod typed;
mod unwatched;
mod upgrade;
mod urgent;
mod waiting;
mod waits_that_end;
mod wakers;
