//! The engine between nodes on loopback.

mod cases;
mod conformance;
mod frames;
mod guests;
mod hostile;
#[path = "../../../../xtask/src/cluster_keys/issue.rs"]
mod issue;
mod leaks;
mod members;
mod refusals;
mod sessions;
mod simulated;
mod starts;
mod support;
mod tls;
