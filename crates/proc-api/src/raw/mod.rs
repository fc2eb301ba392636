//! The unsafe code of this crate, behind safe interfaces.
//!
//! **Promises.** No other module of the crate contains `unsafe`; the compiler denies it there. Each
//! type states in a single place why it is sound.
//!
//! **Imports.** Nothing of this crate; `ganger-nodes` for memory.
#![allow(unsafe_code, reason = "this module is where the crate keeps it")]

mod apart;
mod cursor;
mod downcast;
mod exclusive;
mod opaque;
mod same;

pub(crate) use apart::apart;
pub use apart::{First, Others, join};
pub(crate) use cursor::{Cursor, Node, Reader};
pub(crate) use downcast::downcast_ref;
pub use exclusive::Exclusive;
pub use opaque::Kind;
pub(crate) use opaque::Opaque;
pub(crate) use same::as_same;
