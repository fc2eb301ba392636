#![doc = include_str!("../README.md")]

mod empty_host;
mod error;
mod hop;
mod mailbox;
mod mailbox_receiver;
mod node;
mod receiver;
mod router;
mod table;

pub use empty_host::EmptyHost;
pub use error::{AddError, AttachError};
/// For those who pass packages on as nodes do; a scheduler does.
#[doc(hidden)]
pub use hop::Hop;
pub use mailbox::Mailbox;
pub use mailbox_receiver::MailboxReceiver;
pub use node::Node;
pub use receiver::{FromFn, Receiver, from_fn};
pub use router::Router;

/// What a [`MailboxReceiver`] hands out.
pub use ganger_mpsc::{Batch, RecvError, RecvTimeoutError, TryRecvError};

/// Where this crate's tracing events go.
const TARGET: &str = "ganger::relay";
