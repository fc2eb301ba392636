#![doc = include_str!("../README.md")]

pub mod account;
pub mod memory;
pub mod options;
pub mod round;
pub mod soak;
pub mod summary;
pub mod watch;

mod actor;
mod chaos;
mod commands;
mod ending;
mod faults;
mod heap;
mod limits;
mod parcel;
mod patience;
mod plan;
mod quiet;
mod sink;
mod site;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod threads;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod threads_off;
mod watchdog;
mod workloads;

pub use faults::quiet_panics;
pub use options::Options;
pub use soak::soak;
pub use watch::Watch;
