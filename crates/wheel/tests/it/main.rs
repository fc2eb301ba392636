//! What users of a wheel rely on.
#![allow(missing_docs)]

mod behaviour;
mod checker;
mod model;
