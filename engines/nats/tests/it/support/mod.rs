//! A broker, nodes, and a plain client of the broker.

pub(crate) mod broker;
pub(crate) mod node;
pub(crate) mod proxy;
pub(crate) mod raw;
