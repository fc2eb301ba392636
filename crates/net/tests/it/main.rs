//! Sockets in processes.

mod by_yields;
mod conformance;
mod echo;
mod edges;
mod ends;
mod incoming;
mod simulated;
mod support;
