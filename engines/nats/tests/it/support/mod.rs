//! A broker, nodes, and a client that speaks the broker's protocol by itself.

pub(crate) mod broker;
pub(crate) mod node;
pub(crate) mod raw;
