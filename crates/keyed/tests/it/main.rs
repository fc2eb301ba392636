//! What `ganger-keyed` promises, in simulations and on threads.

mod chaos;
mod evictions;
mod failures;
mod keys;
mod starts;
mod support;
