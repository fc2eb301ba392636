//! A server that speaks the Redis protocol: a process for each connection, and a process for each
//! shard of the keys. Connections carry out short commands themselves if the keys are free. `cargo
//! run --release -p ganger-examples --features kv --bin kv`, and then `redis-cli -p 6400 set name
//! value`.

pub(crate) mod commands;
pub(crate) mod connection;
pub(crate) mod held;
pub(crate) mod listener;
pub(crate) mod protocol;
pub(crate) mod server;
pub(crate) mod shard;
pub(crate) mod store;
pub(crate) mod transaction;

use clap::Parser;
use ganger::net::Net;
use ganger::prelude::*;
use server::Settings;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

/// Keeps keys and values in memory, for clients that speak the Redis protocol.
#[derive(Parser)]
struct Options {
    /// Where it listens.
    #[arg(long, default_value = "127.0.0.1:6400")]
    listen: SocketAddr,
    /// Worker threads [default: one for each processor].
    #[arg(long)]
    workers: Option<usize>,
    /// Processes that the keys are divided among [default: two for each processor].
    #[arg(long)]
    shards: Option<usize>,
    /// Connections at a time.
    #[arg(long, default_value_t = Settings::default().clients)]
    clients: usize,
    /// Seconds that a client may take for a request that it has begun, or for an answer.
    #[arg(long, default_value_t = 30)]
    patience: u64,
}

fn main() -> Result<(), BoxError> {
    let options = Options::parse();
    let mut settings = Settings {
        clients: options.clients,
        patience: Duration::from_secs(options.patience),
        ..Settings::default()
    };
    settings.shards = options.shards.unwrap_or(settings.shards).max(1);

    let mut builder = Scheduler::builder().driver(Net::new()?);
    builder = builder.mailbox_limit(settings.mailbox_limit());
    if let Some(workers) = options.workers {
        builder = builder.workers(workers);
    }
    let scheduler = builder.start()?;
    let (tree, address) = listener::start(&scheduler, options.listen, settings)?;
    println!("{tree}\nlistens at {address}; Ctrl-C stops it");

    let (interrupt, interrupted) = mpsc::channel();
    ctrlc::set_handler(move || _ = interrupt.send(()))?;
    interrupted.recv()?;
    println!("{:?}", scheduler.stop(Duration::from_secs(10))?);
    Ok(())
}
