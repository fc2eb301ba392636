//! The programs, each with its clients.

mod axum;
mod baskets;
mod crawl;
mod grpc;
mod http;
mod kv;
mod ledger;
mod recipes;
mod trace;
mod wordfreq;
