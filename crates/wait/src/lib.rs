#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod block;
mod queue;
mod until;
mod waiter;
mod wake_list;
pub mod watch;

pub use block::{block_on, block_on_for};
pub use queue::{All, WaitQueue, WaiterEntry, WaiterKey};
pub use until::{Until, answer};
pub use waiter::{Left, Waiter};
pub use wake_list::WakeList;
