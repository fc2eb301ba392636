//! The promises of `ganger-time`, in simulations and on threads.

mod at_the_end;
mod behaviour;
mod messages;
mod mixed;
mod stress;
mod support;
mod within;
