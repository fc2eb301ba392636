#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod direct;
mod discovery;
mod error;
mod link;
mod local;
mod node;
mod refusal;
mod security;
mod signal;
mod wire;

pub use direct::Direct;
pub use discovery::{Discovery, SeedsFile};
pub use error::DirectError;
pub use local::join_local;
pub use refusal::{Reason, Refused};
