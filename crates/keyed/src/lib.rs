#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod error;
mod incarnation;
mod kind;
mod registry;
mod shared;
mod table;

pub use error::{KeyedError, KeyedErrorKind};
pub use kind::{KindBuilder, Kinds, NewKind};
pub use registry::{Keyed, KeyedAddress};
pub use shared::Key;
