//! tokio's ecosystem in processes.

mod behaviour;
mod echo;
mod http;
mod in_tokio;
mod limits;
mod no_driver;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod serve_ends;
mod support;
#[cfg(feature = "tls")]
mod tls;
