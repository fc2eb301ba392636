//! The example of gRPC, with its client; and its routes on tonic's own server, which a task ends.

#[path = "../../grpc/main.rs"]
#[allow(dead_code, reason = "`main` is for those that run it")]
mod example;

use ganger::prelude::*;
use ganger::tokio::Tokio;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

const PATIENCE: Duration = Duration::from_secs(60);

fn scheduler() -> Scheduler {
    let builder = Scheduler::builder().workers(2);
    builder.driver(Tokio::new().unwrap()).start().unwrap()
}

fn add(scheduler: &Scheduler, address: SocketAddr, name: &'static str, amount: u64) -> u64 {
    let client = scheduler.spawn(async move |_: Cx| {
        let total = example::add(address, name.into(), amount).await?;
        Ok::<_, BoxError>(total)
    });
    client.unwrap().wait().take().unwrap()
}

/// Stops the scheduler. The stop is over when all servers have ended, each by itself.
fn stop(scheduler: &Scheduler, address: SocketAddr) {
    let report = scheduler.stop(PATIENCE).unwrap();
    assert_eq!((report.forced, report.stuck.len()), (0, 0), "{report:?}");
    assert!(TcpStream::connect(address).is_err());
}

// pins: I11
#[test]
fn routes_of_tonic_are_served() {
    let scheduler = scheduler();
    let address = example::start(&scheduler, "127.0.0.1:0").unwrap();
    assert_eq!(add(&scheduler, address, "apples", 3), 3);
    assert_eq!(add(&scheduler, address, "pears", 1), 1);
    assert_eq!(add(&scheduler, address, "apples", 4), 7);
    stop(&scheduler, address);
}

/// Ends the server by a signal: tonic's server looks at it wherever the server is polled, and its
/// connections on the runtime.
// pins: P10, I5
#[test]
fn the_server_of_tonic_ends_gracefully_by_a_signal_of_its_task() {
    let scheduler = scheduler();
    let routes = example::routes(&scheduler).unwrap();
    let (send, listens) = channel();
    let server = scheduler.spawn(async move |cx: Cx| {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        send.send(listener.local_addr()?)?;
        let signal = cx.cancel_signal();
        // Elsewhere than in the task, where a wait of its `Cx` panics.
        let server = tokio::spawn(async move {
            let server = Server::builder().add_routes(routes);
            server
                .serve_with_incoming_shutdown(TcpIncoming::from(listener), signal)
                .await
        });
        server.await??;
        Ok::<_, BoxError>("gracefully".to_owned())
    });
    let server = server.unwrap();
    let address = listens.recv().unwrap();
    assert_eq!(add(&scheduler, address, "apples", 3), 3);
    let stop = thread::spawn(move || stop(&scheduler, address));
    let ended = server.wait().take::<String>().unwrap();
    assert_eq!(ended, "gracefully");
    stop.join().unwrap();
}
