//! Tests of the observer.
#![allow(missing_docs)]

#[cfg(feature = "serve")]
mod endpoint;
#[cfg(feature = "observer")]
mod observer;
mod trace;
