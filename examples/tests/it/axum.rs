//! A router of axum: served by the library's server, and by axum's own, which a task ends.

use axum::extract::{Extension, State};
use axum::routing::get;
use axum::{Router, serve as axum_serve};
use ganger::prelude::*;
use ganger::tokio::{Peer, Tokio, serve};
use std::future::IntoFuture;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

const PATIENCE: Duration = Duration::from_secs(60);

/// Notes a request, and answers it when the test lets it.
#[derive(Clone)]
struct Gate {
    begun: Sender<()>,
    opens: Arc<Semaphore>,
}

async fn slow(State(gate): State<Gate>) -> String {
    gate.begun.send(()).unwrap();
    gate.opens.acquire().await.unwrap().forget();
    "slow".into()
}

async fn peer(Extension(Peer(peer)): Extension<Peer>) -> String {
    peer.to_string()
}

fn router() -> (Router, Receiver<()>, Arc<Semaphore>) {
    let (begun, begins) = channel();
    let opens = Arc::new(Semaphore::new(0));
    let gate = Gate {
        begun,
        opens: Arc::clone(&opens),
    };
    let router = Router::new()
        .route("/slow", get(slow))
        .route("/peer", get(peer))
        .with_state(gate);
    (router, begins, opens)
}

fn scheduler() -> Scheduler {
    let builder = Scheduler::builder().workers(2);
    let scheduler = builder.driver(Tokio::new().unwrap()).build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

fn ask(address: SocketAddr, path: &str) -> TcpStream {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: here\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    client
}

fn read_all(mut client: TcpStream) -> String {
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

/// Stops the scheduler during a request, which is answered.
fn stops_gracefully(
    scheduler: Scheduler,
    address: SocketAddr,
    begins: &Receiver<()>,
    opens: &Semaphore,
) {
    let client = ask(address, "/slow");
    begins.recv_timeout(PATIENCE).unwrap();
    let stop = thread::spawn(move || scheduler.stop(PATIENCE).unwrap());
    while TcpStream::connect(address).is_ok() {
        thread::yield_now();
    }
    opens.add_permits(1);
    assert!(read_all(client).ends_with("slow"));
    let report = stop.join().unwrap();
    assert_eq!((report.forced, report.stuck.len()), (0, 0), "{report:?}");
}

// pins: I11
#[test]
fn a_router_of_axum_is_served() {
    let scheduler = scheduler();
    let (router, begins, opens) = router();
    let (send, listens) = channel();
    let server = scheduler.spawn(async move |_: Cx| {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        send.send(listener.local_addr()?)?;
        Ok(serve(listener, router).await?)
    });
    drop(server.unwrap());
    let address = listens.recv().unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = b"GET /peer HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n";
    client.write_all(request).unwrap();
    let own = client.local_addr().unwrap().to_string();
    assert!(read_all(client).ends_with(&own));
    stops_gracefully(scheduler, address, &begins, &opens);
}

/// Ends the server by a signal that axum polls in a task of the runtime.
// pins: P10, I5
#[test]
fn the_server_of_axum_ends_gracefully_by_a_signal_of_its_task() {
    let scheduler = scheduler();
    let (router, begins, opens) = router();
    let (send, listens) = channel();
    let server = scheduler.spawn(async move |cx: Cx| {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        send.send(listener.local_addr()?)?;
        let server = axum_serve(listener, router).with_graceful_shutdown(cx.cancel_signal());
        Ok(server.into_future().await?)
    });
    drop(server.unwrap());
    let address = listens.recv().unwrap();
    stops_gracefully(scheduler, address, &begins, &opens);
}
