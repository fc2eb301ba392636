#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod app;
mod draw;
mod fault;
mod feed;
mod measure;
mod once;
mod options;
mod save;
mod screen;
mod source;
pub mod text;

pub use fault::Fault;
pub use once::{Once, once, once_json};
pub use options::Options;
pub use screen::run;
pub use source::{Address, Demo, Remote, Source};
