//! Processes that stand still, in simulations.

mod simulated;
