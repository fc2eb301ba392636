//! Items in nodes, in lists owned by one thread.
//!
//! The ground of the crate: the chains of pushers before other threads see them, and the batches of
//! drains. These lists are not shared, never block, and have no atomic operation. Nodes come from
//! `ganger_nodes`.
//!
//! From the bottom: `node` is an item and a link; `batch` is a list from the oldest to the newest
//! item, or a single item; `chain` is a list from the newest to the oldest, as in the queue's word.
//! May import nothing else of this crate.

mod batch;
mod chain;
mod node;

pub use batch::{Batch, BatchIntoIter, BatchIter, Single};
pub(crate) use chain::Chain;
pub(crate) use node::Node;
