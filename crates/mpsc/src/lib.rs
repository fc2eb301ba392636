#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod backlog;
mod batch;
mod bounded;
mod channel;
mod error;
mod iter;
#[cfg(test)]
mod loom_room;
mod node;
mod outcome;
mod queue;
mod receiver;
mod room;
mod sender;
mod single;
#[cfg(feature = "async")]
mod task;
mod word;

pub use batch::{Batch, BatchIntoIter, BatchIter};
pub use bounded::BoundedSender;
pub use channel::{bounded, channel};
pub use error::{Closed, RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};
pub use iter::{IntoIter, Iter, TryIter};
pub use outcome::{Closing, Park, Pushed, Sealed};
pub use queue::Queue;
pub use receiver::Receiver;
pub use sender::Sender;
pub use single::Single;
#[cfg(feature = "async")]
pub use task::AsyncReceiver;

/// What queues keep of the memory of nodes, to use it again.
pub mod node_cache {
    pub use ganger_nodes::{DEFAULT_LIMIT, SLAB_BYTES, clear, limit, set_limit};
}
