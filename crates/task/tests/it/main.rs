//! The promises of tasks, as their users see them.

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
