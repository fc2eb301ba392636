//! What `ganger-time` promises, in simulations and on threads.

mod behaviour;
mod mixed;
mod stress;
mod support;
