//! Items in nodes, in lists that one thread owns.
//!
//! The ground of the crate: what a pusher builds before other threads see it, and what a drain
//! hands over. Nothing here is shared, blocks, or has an atomic operation. Nodes come from
//! `ganger_nodes`.
//!
//! From the bottom: `node` is one item and a link; `batch` is a list from the oldest to the newest
//! item; `chain` is a list from the newest to the oldest, as the queue's word has it; `single` is
//! one item alone. May import nothing else of this crate.

mod batch;
mod chain;
mod node;
mod single;

pub use batch::{Batch, BatchIntoIter, BatchIter};
pub(crate) use chain::Chain;
pub(crate) use node::Node;
pub use single::Single;
