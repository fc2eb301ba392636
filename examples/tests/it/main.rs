//! The programs, each with its clients.

mod axum;
mod http;
mod kv;
mod wordfreq;
