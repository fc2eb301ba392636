//! The promises of `ganger-cluster`: the session by itself, and in a model of three nodes.

#[cfg(feature = "conformance")]
mod again;
mod bounds;
#[cfg(feature = "conformance")]
mod calls_back;
#[cfg(feature = "conformance")]
mod conformance;
#[cfg(feature = "conformance")]
mod failures;
mod far;
mod groups;
mod inherited;
mod model;
mod node;
mod order;
mod owners;
mod panics;
mod questions;
#[cfg(feature = "conformance")]
mod recovery;
mod registrar;
mod session;
mod simulated;
mod strong;
mod support;
mod tellers;
mod traces;
mod twin;
#[cfg(feature = "conformance")]
mod versions;
mod wire;
