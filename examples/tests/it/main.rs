//! The programs, each with its clients.

mod axum;
mod grpc;
mod http;
mod kv;
mod wordfreq;
