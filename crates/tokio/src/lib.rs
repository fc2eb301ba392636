#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod driver;
mod in_tokio;
#[cfg(feature = "serve")]
mod serve;
mod signal;

pub use driver::{RuntimeRefused, Tokio};
pub use in_tokio::{RuntimeGone, in_tokio};
#[cfg(feature = "serve")]
pub use serve::{App, HyperApp, Listener, Peer, Serve, TowerApp, serve};
pub use signal::shutdown_signal;
