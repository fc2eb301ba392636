#![doc = include_str!("../README.md")]

// Lowest first: each module imports only modules of earlier groups (`cargo xtask tidy`).
mod hop;
mod host_address;
mod receiver;
mod table;

mod channels;
mod empty_host;
mod error;

mod mailbox_receiver;
mod node;

mod mailbox;
mod router;

pub use empty_host::EmptyHost;
pub use error::{AddError, AttachError};
/// For receivers that pass packages on as nodes do, such as a scheduler.
#[doc(hidden)]
pub use hop::Hop;
pub use mailbox::Mailbox;
pub use mailbox_receiver::MailboxReceiver;
pub use node::Node;
pub use receiver::{FromFn, Receiver, from_fn};
pub use router::Router;

/// What a [`MailboxReceiver`] hands out.
pub use ganger_mpsc::{Batch, RecvError, RecvTimeoutError, TryRecvError};
