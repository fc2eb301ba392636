//! A running node: its peers, the addresses it knows, and its processes.

mod accept;
mod book;
mod dial;
mod handshake;
mod keeper;
mod meet;
mod reports;
mod state;

pub(crate) use accept::accept;
pub(crate) use keeper::{close, keep, seek};
pub(crate) use state::{Limits, Node, Plan, Stays};
