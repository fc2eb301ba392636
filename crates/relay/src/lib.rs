#![doc = include_str!("../README.md")]

// Lowest first: each module imports only modules of earlier groups (`cargo xtask tidy`).
mod host_address;
mod passing;
mod table;

mod channels;
mod error;

mod inbox;
mod node;

mod channel_host;
mod router;

pub use channel_host::ChannelHost;
pub use error::{AddError, AttachError};
pub use inbox::Inbox;
pub use node::Node;
pub use router::Router;

/// The trait of all receivers, and receivers that are closures.
pub use ganger_proc_api::{EnvelopeReceiver, ReceiverFn, receiver_fn};

/// The types in the methods of an [`Inbox`].
pub use ganger_mpsc::{Batch, RecvError, RecvTimeoutError, TryRecvError};
