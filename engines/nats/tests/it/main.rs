//! The engine with a real broker.

mod frames;
mod pressure;
mod rights;
mod sessions;
mod support;
