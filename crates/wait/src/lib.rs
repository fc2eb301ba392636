#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod block;
mod queue;
mod told;
mod until;
mod waiter;
pub mod watch;

pub use block::{block_on, block_on_for};
pub use queue::{All, Entry, Place, WaitQueue};
pub use told::Told;
pub use until::{Until, answer};
pub use waiter::{Left, Waiter};
