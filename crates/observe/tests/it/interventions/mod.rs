//! Suspended processes, in simulations.

mod simulated;
