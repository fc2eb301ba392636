//! Tests of the observer.
#![allow(missing_docs)]

#[cfg(feature = "serve")]
mod endpoint;
#[cfg(any(feature = "metrics", feature = "serve"))]
mod metrics;
#[cfg(feature = "observer")]
mod observer;
mod trace;
