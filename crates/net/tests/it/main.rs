//! Sockets in processes.

mod conformance;
mod echo;
mod ends;
mod incoming;
mod simulated;
mod support;
