//! Tests of a wheel's public behaviour.
#![allow(missing_docs)]

mod behaviour;
mod checker;
mod model;
