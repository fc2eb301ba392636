//! The endpoint, asked over loopback.

mod access;
mod actions;
mod answers;
mod events;
mod limits;
#[cfg(feature = "cluster")]
mod nodes;
mod observed;
#[cfg(all(
    feature = "profile",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod profile;
mod queries;
mod query_checker;
mod recent;
mod sockets;
mod stuck;
pub(crate) mod support;
mod traces;
mod views;
