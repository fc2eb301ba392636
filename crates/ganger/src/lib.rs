#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "deque")]
pub use ganger_deque as deque;
#[cfg(feature = "mpsc")]
pub use ganger_mpsc as mpsc;
pub use ganger_proc_api as proc_api;
#[cfg(feature = "relay")]
pub use ganger_relay as relay;
#[cfg(feature = "sched")]
pub use ganger_sched as sched;
#[cfg(feature = "sim")]
pub use ganger_sim as sim;
#[cfg(feature = "time")]
pub use ganger_time as time;

pub mod prelude;

#[cfg(all(feature = "sched", feature = "relay"))]
mod runtime;

#[cfg(all(feature = "sched", feature = "relay"))]
pub use runtime::{Runtime, RuntimeBuilder, RuntimeError};

#[doc(no_inline)]
pub use prelude::*;
