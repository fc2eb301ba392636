//! Sockets in processes.

mod conformance;
mod echo;
mod edges;
mod ends;
mod incoming;
mod simulated;
mod support;
