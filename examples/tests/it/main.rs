//! The programs, each with its clients.

mod http;
mod kv;
mod wordfreq;
