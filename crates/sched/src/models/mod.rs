//! Models of the scheduler's protocols: all interleavings under loom, a stress loop under `std`.

mod loom_cancel_signals;
mod loom_closing_inbox;
mod loom_driver;
mod loom_exit;
mod loom_idle;
mod loom_interventions;
mod loom_lanes;
mod loom_origin;
mod loom_reapers;
mod loom_shares;
mod loom_timer_waiter;
mod loom_turn_marks;
mod loom_urgent;
mod loom_waiters;
mod loom_wake;
mod loom_wakeup;
mod loom_worker_slots;
