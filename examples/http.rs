//! A web server on the scheduler's workers, with a process for each connection: files, JSON,
//! server-sent events, a graceful shutdown.
//! `cargo run -p ganger-examples --features http --bin http -- FOLDER`, and then
//! `curl localhost:8080/stats`, `curl -N localhost:8080/events`, `curl localhost:8080/files/NAME`.

use bytes::Bytes;
use ganger::prelude::*;
use ganger::tokio::{Tokio, serve, shutdown_signal};
use http_body_util::channel::{Channel, Sender};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

type Body = BoxBody<Bytes, BoxError>;

/// The shared state of all connections.
struct Site {
    folder: PathBuf,
    requests: AtomicU64,
}

fn main() -> Result<(), BoxError> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    let scheduler = Scheduler::builder().driver(Tokio::new()?).start()?;
    let address = start(&scheduler, "127.0.0.1:8080", folder.into())?;
    println!("http://{address}/stats, /events, /files/…; Ctrl-C stops it");
    let asked = scheduler.spawn(async |_: Cx| Ok(shutdown_signal().await?))?;
    asked.wait().into_result()?;
    // Each begun request is answered.
    println!("{:?}", scheduler.stop(Duration::from_secs(5))?);
    Ok(())
}

/// Starts a server, and returns where it listens.
pub(crate) fn start(
    scheduler: &Scheduler,
    address: &'static str,
    folder: PathBuf,
) -> Result<SocketAddr, BoxError> {
    let requests = AtomicU64::new(0);
    let site = Arc::new(Site { folder, requests });
    let (send, listens) = std::sync::mpsc::channel();
    scheduler.spawn(async move |cx: Cx| {
        let listener = TcpListener::bind(address).await?;
        send.send(listener.local_addr()?)?;
        let context = cx.context().clone();
        let app = service_fn(move |request| answer(context.clone(), Arc::clone(&site), request));
        Ok(serve(listener, app).await?)
    })?;
    Ok(listens.recv()?)
}

async fn answer(
    context: Context,
    site: Arc<Site>,
    request: Request<Incoming>,
) -> Result<Response<Body>, BoxError> {
    let served = site.requests.fetch_add(1, Ordering::Relaxed);
    match request.uri().path() {
        "/stats" => {
            let host = context.pid().host().as_str();
            let stats = serde_json::json!({ "requests": served + 1, "host": host });
            let body = Full::from(stats.to_string());
            respond(StatusCode::OK, "application/json", body)
        }
        "/events" => {
            let (events, body) = Channel::new(16);
            context.spawn(async move |cx: Cx| tick(cx, events).await)?;
            let response = Response::builder().header("content-type", "text/event-stream");
            Ok(response.body(body.boxed())?)
        }
        path => match file(&site.folder, path).await {
            Some((kind, bytes)) => respond(StatusCode::OK, kind, bytes.into()),
            None => respond(
                StatusCode::NOT_FOUND,
                "text/plain",
                "there is none\n".into(),
            ),
        },
    }
}

fn respond(status: StatusCode, kind: &str, body: Full<Bytes>) -> Result<Response<Body>, BoxError> {
    let response = Response::builder().status(status);
    let response = response.header("content-type", kind);
    Ok(response.body(body.map_err(|never| match never {}).boxed())?)
}

/// Sends an event each 100 ms, until the client has gone, or the server stops.
async fn tick(cx: Cx, mut events: Sender<Bytes, BoxError>) -> Result<(), BoxError> {
    for number in 0_u64.. {
        let event = format!("data: {number}\n\n");
        let is_sent = cx.until_cancelled(events.send_data(event.into())).await;
        if !matches!(is_sent, Ok(Ok(()))) || cx.sleep(Duration::from_millis(100)).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Reads a file below the folder, and returns its type, too.
async fn file(folder: &Path, path: &str) -> Option<(&'static str, Vec<u8>)> {
    let path = Path::new(path.strip_prefix("/files/")?);
    if !path
        .components()
        .all(|it| matches!(it, Component::Normal(_)))
    {
        return None;
    }
    let bytes = tokio::fs::read(folder.join(path)).await.ok()?;
    let kind = match path.extension().and_then(|it| it.to_str()) {
        Some("html") => "text/html",
        Some("json") => "application/json",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    Some((kind, bytes))
}
