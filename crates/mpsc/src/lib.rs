#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

// Layers: `list` is the ground, `queue` may import it, and `channel` and `injector` both.
mod channel;
mod injector;
mod list;
mod queue;

#[cfg(feature = "async")]
pub use channel::{AsyncReceiver, SendFuture};
pub use channel::{BoundedSender, IntoIter, Iter, Receiver, Sender, TryIter, bounded, channel};
pub use channel::{RecvError, RecvTimeoutError, SendError, SendTimeoutError};
pub use channel::{TryRecvError, TrySendError};
pub use injector::Injector;
pub use list::{Batch, BatchIntoIter, BatchIter, Single};
pub use queue::{Closed, Closing, Park, Pushed, Queue, Sealed};

/// The memory of nodes that queues keep for reuse.
pub mod node_cache {
    pub use ganger_nodes::{DEFAULT_LIMIT, SLAB_BYTES, clear, end_runs, limit, set_limit};
}
