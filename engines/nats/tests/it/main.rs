//! The engine with a real broker.

mod conformance;
mod frames;
mod keys;
mod pressure;
mod rights;
mod sessions;
mod support;
