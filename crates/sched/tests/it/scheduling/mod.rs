//! The choice of the process that runs next, and of its worker; no ready process starves.

mod catching_up;
#[cfg(feature = "check")]
mod checked;
mod fairness;
mod hand_off;
mod stress;
mod turns;
mod urgent_lane;
mod workers;
