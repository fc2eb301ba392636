#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod queue;
mod waiter;

pub use queue::{All, Entry, Place, WaitQueue};
pub use waiter::{Left, Waiter};
