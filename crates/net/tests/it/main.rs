//! Sockets in processes.

mod buffers;
mod by_yields;
mod chaos;
#[cfg(unix)]
mod children;
mod conformance;
mod echo;
mod edges;
mod ends;
#[cfg(all(feature = "hyper", unix))]
mod hyper;
mod incoming;
mod looks;
mod options;
#[cfg(unix)]
mod signals;
mod simulated;
mod simulated_machines;
mod simulated_others;
mod support;
