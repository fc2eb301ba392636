//! The engine with a real broker.

mod conformance;
mod frames;
#[path = "../../../../xtask/src/cluster_keys/issue.rs"]
mod issue;
mod keys;
mod pressure;
mod rights;
mod sessions;
mod stores;
mod support;
