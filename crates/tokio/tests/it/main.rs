//! tokio's ecosystem in processes.

mod behaviour;
mod echo;
mod http;
mod limits;
mod support;
