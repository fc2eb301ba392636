//! The receivers of envelopes: schedulers, routers, channels, and users' own.
//!
//! **Promises.** A receiver takes an envelope, or returns it with the reason. Receivers that pass
//! envelopes on in a loop refuse, and don't overflow the stack.
//!
//! **Imports.** `values`.

mod hop;
mod receiver;

pub use hop::Hop;
pub use receiver::{EnvelopeReceiver, ReceiverFn, receiver_fn};
