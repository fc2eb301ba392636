//! Messages and batches: every message once, in order, and seen by the step that takes it.

mod batches;
mod between_schedulers;
mod closed_targets;
mod far_addresses;
mod kept_by_timers;
mod order_of_a_sender;
mod send_all;
mod system_lane;
mod system_send;
mod taking_events;
mod typed;
mod wakers;
