//! The promises of `ganger-link`, in simulations and on threads.

mod canonical;
mod dead_letters;
mod ends;
mod functions;
mod groups;
mod links;
mod lookups;
mod portions;
mod races;
mod remote;
mod standard;
mod support;
mod watches;
