//! Addresses, recipients and replies on their way to another node.

mod addresses;
mod converts;
mod far_reply;

pub use addresses::{converted, decode, drop_refused, encode};
pub use far_reply::{Answers, FarReply};
