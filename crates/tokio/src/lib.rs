#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod driver;

pub use driver::{RuntimeRefused, Tokio};
