//! Tests of the observer.
#![allow(missing_docs)]

#[cfg(feature = "serve")]
mod endpoint;
mod trace;
