//! What tasks promise, as their users see it.

mod support;

mod budget;
mod cancel_signal;
mod cancelling;
mod children;
mod collisions;
mod combinators;
mod commands;
mod conformance;
mod fairness;
mod lone;
mod messages;
mod model;
mod pinning;
mod sets;
