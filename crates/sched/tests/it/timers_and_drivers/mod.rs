//! Timers, and drivers: where threads wait for the time or for the system.

mod driver;
mod timers;
