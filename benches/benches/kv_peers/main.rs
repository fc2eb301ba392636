//! The example `kv` compared with the same server on tokio, and with redis-server. The client is
//! `redis-benchmark`, in a process of its own; each server has a process, too.
//!
//! Other load on the machine makes figures worse: the peers take turns, and the table has the best
//! run of each, with the median.

#[path = "../../../examples/kv/main.rs"]
#[allow(dead_code, reason = "the example's own `main`")]
mod example;
#[path = "../common/server.rs"]
mod server;
mod tokio_server;

use clap::Parser;
use example::server::Settings;
use ganger::net::Net;
use ganger::prelude::*;
use server::{Failure, Server, ended, listen, until_end};
use std::net::TcpListener;
use std::num::NonZeroU16;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// Compares the example `kv` with the same server on tokio, and with redis-server
#[derive(Debug, Parser)]
#[command(bin_name = "cargo bench -p ganger-benches --bench kv_peers --")]
struct Options {
    /// How many times each server is measured
    #[arg(long, value_name = "N", default_value = "5")]
    reps: NonZeroU16,

    /// Requests of each run
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    requests: u64,

    /// Connections
    #[arg(long, value_name = "N", default_value_t = 50)]
    clients: u16,

    /// Worker threads of the servers on Ganger and on tokio [default: the number of processors]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,

    /// Small runs: shows that they work, not how fast
    #[arg(long)]
    quick: bool,

    /// Runs as a server, until its standard input ends
    #[arg(long, hide = true, value_name = "PEER")]
    serve: Option<String>,

    /// `cargo bench` says this to every program
    #[arg(long, hide = true)]
    bench: bool,
}

const PEERS: [&str; 3] = ["ganger", "tokio", "redis-server"];

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match &options.serve {
        Some(peer) => serve(peer, &options),
        None => measure(&options),
    };
    ended(result)
}

/// Runs a server that prints its port, and ends with its standard input.
fn serve(peer: &str, options: &Options) -> Result<(), Failure> {
    let workers = options.workers.unwrap_or(processors());
    let settings = Settings::default();
    if peer == "tokio" {
        tokio_server::serve(listen()?, workers, settings.shards);
        return until_end();
    }
    let builder = Scheduler::builder().workers(workers).driver(Net::new()?);
    let scheduler = builder.mailbox_limit(settings.mailbox_limit()).start()?;
    let any = "127.0.0.1:0".parse()?;
    let (_tree, address) = example::listener::start(&scheduler, any, settings)?;
    println!("{}", address.port());
    until_end()?;
    scheduler.stop(Duration::from_secs(10))?;
    Ok(())
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

fn start(peer: &str, options: &Options) -> Result<Server, Failure> {
    if peer != "redis-server" {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--serve", peer]);
        if let Some(workers) = options.workers {
            command.args(["--workers", &workers.to_string()]);
        }
        return Server::start(&mut command);
    }
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut command = Command::new(peer);
    let port_text = port.to_string();
    command.args(["--port", &port_text, "--save", "", "--appendonly", "no"]);
    command.args(["--bind", "127.0.0.1", "--daemonize", "no"]);
    command.stdout(Stdio::null()).stdin(Stdio::null());
    let process = command.spawn()?;
    let server = Server { process, port };
    for _ in 0..1_000 {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(server);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err("redis-server does not listen after 10 s".into())
}

/// Requests a second, and the milliseconds in which half of them and 99 of 100 are answered.
#[derive(Clone, Copy)]
struct Figures {
    rate: f64,
    p50: f64,
    p99: f64,
}

fn measure(options: &Options) -> Result<(), Failure> {
    let is_there = |program| Command::new(program).arg("--version").output().is_ok();
    if !is_there("redis-benchmark") {
        println!("redis-benchmark is not there: Debian's package redis-tools has it");
        return Ok(());
    }
    let peers = PEERS
        .iter()
        .filter(|it| **it != "redis-server" || is_there("redis-server"));
    let peers: Vec<_> = peers.copied().collect();
    if peers.len() < PEERS.len() {
        println!(
            "redis-server is not there, and is left out: Debian's package redis-server has it"
        );
    }
    let (requests, reps) = match options.quick {
        true => (1_000, 1),
        false => (options.requests, options.reps.get()),
    };
    println!(
        "{} clients, {requests} requests, {reps} runs",
        options.clients
    );
    println!("| | | requests/s, best | median | p50 ms | p99 ms |\n|---|---|---|---|---|---|");
    for pipeline in [1, 16] {
        for command in ["set", "get"] {
            let mut figures = vec![Vec::new(); peers.len()];
            for _ in 0..reps {
                for (peer, figures) in peers.iter().zip(&mut figures) {
                    let server = start(peer, options)?;
                    figures.push(run(
                        command,
                        pipeline,
                        &server,
                        (requests, options.clients),
                    )?);
                }
            }
            for (peer, mut figures) in peers.iter().zip(figures) {
                figures.sort_by(|one, other| one.rate.total_cmp(&other.rate));
                let (Some(best), median) = (figures.last(), figures[figures.len() / 2]) else {
                    continue;
                };
                println!(
                    "| {command}, {pipeline} in a row | {peer} | {:.0} | {:.0} | {} | {} |",
                    best.rate, median.rate, median.p50, median.p99
                );
            }
        }
    }
    Ok(())
}

fn run(
    command: &str,
    pipeline: u16,
    server: &Server,
    (requests, clients): (u64, u16),
) -> Result<Figures, Failure> {
    let port = server.port.to_string();
    let mut client = Command::new("redis-benchmark");
    client.args(["-p", &port, "-t", command, "-r", "100000", "--csv"]);
    client.args(["-n", &requests.to_string(), "-c", &clients.to_string()]);
    let output = client.args(["-P", &pipeline.to_string()]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // The columns: test, rps, avg, min, p50, p95, p99, max, all in quotation marks.
    let is_row = |line: &&str| !line.starts_with("\"test\"") && line.contains(',');
    let row = text.lines().find(is_row).unwrap_or_default().split(',');
    let numbers = row.filter_map(|it| it.trim_matches('"').parse().ok());
    let numbers: Vec<f64> = numbers.collect();
    let [rate, _, _, p50, _, p99, _] = numbers[..] else {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("redis-benchmark says: {text}{error}").into());
    };
    Ok(Figures { rate, p50, p99 })
}
