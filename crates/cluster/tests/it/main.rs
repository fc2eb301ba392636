//! The promises of `ganger-cluster`: the session by itself, and in a model of three nodes.

mod model;
mod session;
mod support;
mod twin;
mod wire;
