//! hyper's server, its client, and reqwest, in processes.

use crate::support::{result, start};
use bytes::Bytes;
use ganger_proc_api::{BoxError, Pid};
use ganger_sched::ContextExt;
use ganger_task::Cx;
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};

async fn twice(request: Request<hyper::body::Incoming>) -> Result<Response<Full<Bytes>>, BoxError> {
    let body = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(Full::new(
        [&body[..], &body[..]].concat().into(),
    )))
}

async fn serve(stream: TcpStream) -> Result<(), BoxError> {
    let server = hyper::server::conn::http1::Builder::new();
    server
        .serve_connection(TokioIo::new(stream), service_fn(twice))
        .await?;
    Ok(())
}

/// Starts a server that ends when it is cancelled. Each connection is a process.
async fn server(cx: &Cx) -> Result<(Pid, SocketAddr), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = cx.spawn(async move |cx: Cx| {
        while let Ok(accepted) = cx.until_cancelled(listener.accept()).await {
            let (stream, _) = accepted?;
            cx.spawn(async move |_: Cx| serve(stream).await)?;
        }
        Ok(())
    })?;
    Ok((server.pid(), address))
}

/// Sums the results of processes with this body.
async fn sum_of<F, B>(cx: &Cx, count: u64, body: impl Fn() -> F + Send) -> Result<u64, BoxError>
where
    F: FnOnce(Cx) -> B + Send + 'static,
    B: Future<Output = Result<u64, BoxError>> + Send + 'static,
{
    cx.scope(async move |scope| {
        let mut clients = Vec::new();
        for _ in 0..count {
            clients.push(scope.spawn(body())?);
        }
        let mut sum = 0;
        for client in clients {
            sum += client.await?;
        }
        Ok(sum)
    })
    .await
}

// pins: I1
#[test]
fn hyper_serves_and_asks() {
    const CLIENTS: u64 = 20;
    let (scheduler, _) = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let (server, address) = server(&cx).await?;
        let client = || {
            async move |cx: Cx| {
                let io = TokioIo::new(TcpStream::connect(address).await?);
                let (mut send, connection) = hyper::client::conn::http1::handshake(io).await?;
                // Its other half, in a process.
                cx.spawn(async move |_: Cx| {
                    connection.await?;
                    Ok(())
                })?;
                let mut sum = 0;
                for round in 0..10_usize {
                    let body = Full::<Bytes>::new("x".repeat(round).into());
                    let request = Request::post("/").body(body)?;
                    send.ready().await?;
                    let answer = send.send_request(request).await?;
                    sum += answer.into_body().collect().await?.to_bytes().len() as u64;
                }
                Ok(sum)
            }
        };
        let sum = sum_of(&cx, CLIENTS, client).await?;
        cx.cancel(server, "enough")?;
        Ok(sum)
    });
    assert_eq!(result(task.unwrap()).as_u64(), Some(CLIENTS * 2 * 45));
}

/// Processes on all workers share the client's pool of connections. For each connection, the client
/// has a task of tokio: a waiting thread in the driver runs the task.
// pins: I1
#[test]
fn reqwest_asks() {
    const CLIENTS: u64 = 20;
    let (scheduler, _) = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let (server, address) = server(&cx).await?;
        let client = reqwest::Client::builder().no_proxy().build()?;
        let client = move || {
            let client = client.clone();
            async move |_: Cx| {
                let mut sum = 0;
                for round in 0..10_usize {
                    let request = client.post(format!("http://{address}/"));
                    let answer = request.body("x".repeat(round)).send().await?;
                    assert_eq!(answer.status(), reqwest::StatusCode::OK);
                    sum += answer.bytes().await?.len() as u64;
                }
                Ok(sum)
            }
        };
        let sum = sum_of(&cx, CLIENTS, client).await?;
        cx.cancel(server, "enough")?;
        Ok(sum)
    });
    assert_eq!(result(task.unwrap()).as_u64(), Some(CLIENTS * 2 * 45));
}
