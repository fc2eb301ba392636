//! The engine between nodes on loopback.

mod conformance;
mod frames;
mod guests;
mod hostile;
#[path = "../../../../xtask/src/cluster_keys/issue.rs"]
mod issue;
mod leaks;
mod lossy;
mod members;
mod refusals;
mod sessions;
mod simulated;
mod starts;
mod support;
mod tls;
