//! The promises of `ganger-keyed`, in simulations and on threads.

mod chaos;
mod edges;
mod evictions;
mod failures;
mod keys;
mod starts;
mod support;
