//! A service of gRPC, by tonic, on the scheduler's workers: each request is a process, and asks the
//! actor with the counts. And a client of the service. `cargo run -p ganger-examples --features
//! grpc --bin grpc` serves until Ctrl-C; with `-- apples 3` in another terminal three apples are
//! added.

mod counts;

use counts::{Addition, Counts, CountsClient, CountsServer, Total};
use ganger::prelude::*;
use ganger::tokio::{Tokio, serve, shutdown_signal};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tonic::service::Routes;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

const ADDRESS: &str = "127.0.0.1:50051";

fn main() -> Result<(), BoxError> {
    let scheduler = Scheduler::builder().driver(Tokio::new()?).start()?;
    let words: Vec<_> = std::env::args().skip(1).collect();
    if let [name, amount] = &words[..] {
        let (name, amount) = (name.clone(), amount.parse()?);
        let asked = scheduler.spawn(async move |_: Cx| {
            let total = add(ADDRESS.parse()?, name, amount).await?;
            println!("{total}");
            Ok(())
        })?;
        asked.wait().into_result()?;
        return Ok(());
    }
    let address = start(&scheduler, ADDRESS)?;
    println!("gRPC on {address}; Ctrl-C stops it");
    let asked = scheduler.spawn(async |_: Cx| Ok(shutdown_signal().await?))?;
    asked.wait().into_result()?;
    println!("{:?}", scheduler.stop(Duration::from_secs(5))?);
    Ok(())
}

/// Starts a server, and returns where it listens.
pub(crate) fn start(scheduler: &Scheduler, address: &'static str) -> Result<SocketAddr, BoxError> {
    let routes = routes(scheduler)?;
    let (send, listens) = std::sync::mpsc::channel();
    scheduler.spawn(async move |_: Cx| {
        let listener = TcpListener::bind(address).await?;
        send.send(listener.local_addr()?)?;
        Ok(serve(listener, routes).await?)
    })?;
    Ok(listens.recv()?)
}

/// Returns the routes for tonic, with the actor behind them.
pub(crate) fn routes(scheduler: &Scheduler) -> Result<Routes, BoxError> {
    let ledger = scheduler.spawn(Ledger(HashMap::new()))?;
    let front = Front(ledger.address().clone());
    Ok(Routes::new(CountsServer::new(front)))
}

/// Adds as a client.
pub(crate) async fn add(address: SocketAddr, name: String, amount: u64) -> Result<u64, BoxError> {
    let channel = Channel::from_shared(format!("http://{address}"))?;
    let mut counts = CountsClient::new(channel.connect().await?);
    let total = counts.add(Addition { name, amount }).await?;
    Ok(total.into_inner().amount)
}

/// An addition; the answer is the total.
struct Add(Addition, Reply<u64>);

struct Ledger(HashMap<String, u64>);

impl Actor for Ledger {
    type Message = Add;

    fn receive(&mut self, _: &Context, add: Add, _: &mut StepOutput) -> StepResult {
        let Add(addition, reply) = add;
        let total = self.0.entry(addition.name).or_default();
        *total = total.saturating_add(addition.amount);
        reply.complete(*total);
        Ok(())
    }
}

struct Front(Address<Add>);

impl Counts for Front {
    async fn add(&self, request: Request<Addition>) -> Result<Response<Total>, Status> {
        let addition = request.into_inner();
        let total = self.0.call(|reply| Add(addition, reply)).await;
        let amount = total.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(Response::new(Total { amount }))
    }
}
