//! The promises of `ganger-again`, in simulations, on threads, and against a plain model.

mod asking;
mod model;
mod seen;
mod support;
