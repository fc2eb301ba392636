//! Addresses, recipients, replies and inherited values on their way to another node.

mod addresses;
mod converts;
mod far_reply;
mod inherited;

pub use addresses::{converted, decode, drop_refused, encode};
pub use far_reply::{Answers, FarReply};
pub use inherited::Inherited;
