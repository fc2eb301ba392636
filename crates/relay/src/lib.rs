#![doc = include_str!("../README.md")]

// Lowest first: each module imports only modules of earlier groups (`cargo xtask tidy`).
mod hop;
mod host_address;
mod receiver;
mod table;

mod channels;
mod empty_host;
mod error;

mod inbox;
mod node;

mod channel_host;
mod router;

pub use channel_host::ChannelHost;
pub use empty_host::EmptyHost;
pub use error::{AddError, AttachError};
/// For receivers that pass envelopes on as nodes do, such as a scheduler.
#[doc(hidden)]
pub use hop::Hop;
pub use inbox::Inbox;
pub use node::Node;
pub use receiver::{EnvelopeReceiver, ReceiverFn, receiver_fn};
pub use router::Router;

/// The types in the methods of an [`Inbox`].
pub use ganger_mpsc::{Batch, RecvError, RecvTimeoutError, TryRecvError};
