//! The programs, each with its clients.

mod axum;
mod crawl;
mod grpc;
mod http;
mod kv;
mod ledger;
mod trace;
mod wordfreq;
