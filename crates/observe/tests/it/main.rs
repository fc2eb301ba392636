//! Tests of the observer.
#![allow(missing_docs)]

#[cfg(feature = "observer")]
mod alarms;
#[cfg(feature = "observer")]
mod deadlocks;
#[cfg(feature = "observer")]
mod dumps;
#[cfg(feature = "serve")]
mod endpoint;
#[cfg(feature = "observer")]
mod exits;
#[cfg(feature = "observer")]
mod interventions;
#[cfg(feature = "observer")]
mod life;
#[cfg(any(feature = "metrics", feature = "serve"))]
mod metrics;
#[cfg(feature = "observer")]
mod observer;
#[cfg(all(
    feature = "profile",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod profile;
#[cfg(feature = "observer")]
mod recorder;
mod trace;
