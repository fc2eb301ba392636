//! What `ganger-cluster` promises: the session by itself, and in a model of three nodes.

mod model;
mod session;
mod support;
