//! Monitors, their notices, and exit signals.

mod exit_signals;
mod monitor_and_demonitor;
mod notices;
