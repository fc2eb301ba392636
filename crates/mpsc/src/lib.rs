#![doc = include_str!("../README.md")]

mod batch;
mod channel;
mod error;
mod iter;
mod node;
mod outcome;
mod queue;
mod receiver;
mod sender;
mod word;

pub use batch::{Batch, BatchIntoIter, BatchIter};
pub use channel::channel;
pub use error::{Closed, RecvError, RecvTimeoutError, SendError, TryRecvError};
pub use iter::{IntoIter, Iter, TryIter};
pub use outcome::{Closing, Park, Pushed, Sealed};
pub use queue::Queue;
pub use receiver::Receiver;
pub use sender::Sender;
