//! The example `kv`: its parser, its store, and the server with clients on threads.

#[path = "../../../kv/main.rs"]
#[allow(dead_code, reason = "the example's own `main`")]
mod example;

mod clients;
mod cuts;
mod parser;
mod server;
mod shard;
mod store;
mod transactions;
