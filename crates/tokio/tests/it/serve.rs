//! The web server: its answers, its limit and its time-outs.

use crate::support::{PATIENCE, ms, ok, result, start};
use bytes::Bytes;
use ganger_proc_api::{BoxError, Pid};
use ganger_sched::internal::here;
use ganger_sched::{ContextExt, ProcessHandle, Scheduler};
use ganger_task::Cx;
use ganger_tokio::{App, Listener, Peer, Serve, serve};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

pub(crate) type Answer = Result<Response<Full<Bytes>>, BoxError>;

/// Starts a server of `app`. Returns its process and its address.
pub(crate) fn serve_on<A, K>(
    scheduler: &Scheduler,
    app: A,
    set: impl FnOnce(Serve<TcpListener, A, K>) -> Serve<TcpListener, A, K> + Send + 'static,
) -> (ProcessHandle, SocketAddr)
where
    A: App<K> + Sync,
    K: 'static,
{
    let (send, listens) = channel();
    let server = scheduler.spawn(async move |_: Cx| {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        send.send(listener.local_addr()?)?;
        set(serve(listener, app)).await?;
        ok(())
    });
    (server.unwrap(), listens.recv().unwrap())
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
}

pub(crate) const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n";

pub(crate) fn read_all(mut client: &TcpStream) -> String {
    let mut all = String::new();
    client.read_to_string(&mut all).unwrap();
    all
}

/// Asks on a connection of its own.
pub(crate) fn get(address: SocketAddr) -> String {
    let mut client = connect(address);
    let request = b"GET / HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n";
    client.write_all(request).unwrap();
    read_all(&client)
}

/// Sends a request, and reads the answer of five bytes.
fn ask(mut client: &TcpStream) -> String {
    client.write_all(GET).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"hello") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap()
}

pub(crate) async fn hello(_: Request<Incoming>) -> Answer {
    Ok(Response::new("hello".into()))
}

/// A service of `tower`.
#[derive(Clone)]
struct Tower;

impl<B> tower_service::Service<Request<B>> for Tower {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Peer(peer) = request.extensions().get().unwrap();
        ready(Ok(Response::new(peer.to_string().into())))
    }
}

// pins: I11
#[test]
fn services_of_tower_and_of_hyper_are_served() {
    let (scheduler, _) = start(2);
    let (_server, address) = serve_on(&scheduler, service_fn(hello), |it| it);
    assert!(get(address).ends_with("\r\n\r\nhello"));
    let (_server, address) = serve_on(&scheduler, Tower, |it| it);
    let mut client = connect(address);
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let peer = client.local_addr().unwrap().to_string();
    assert!(read_all(&client).ends_with(&peer));
}

/// Notes the answering process.
fn own_pid(pids: &Mutex<BTreeSet<Pid>>) -> Answer {
    let pid = here::pid().ok_or("no process")?;
    pids.lock().unwrap().insert(pid);
    Ok(Response::new("hello".into()))
}

// pins: I11
#[test]
fn each_connection_is_a_process_and_keeps_it() {
    let (scheduler, _) = start(2);
    let pids = Arc::new(Mutex::default());
    let seen = Arc::clone(&pids);
    let app = service_fn(move |_| ready(own_pid(&seen)));
    let (server, address) = serve_on(&scheduler, app, |it| it);
    let clients: Vec<_> = (0..5).map(|_| connect(address)).collect();
    for _ in 0..3 {
        clients.iter().for_each(|it| drop(ask(it)));
    }
    let pids = pids.lock().unwrap();
    assert_eq!(pids.len(), 5);
    assert!(!pids.contains(&server.pid()));
}

// pins: I11
#[test]
fn each_request_of_http_2_is_a_process() {
    let (scheduler, _) = start(2);
    let pids = Arc::new(Mutex::default());
    let seen = Arc::clone(&pids);
    let app = service_fn(move |_| {
        let seen = Arc::clone(&seen);
        async move { own_pid(&seen) }
    });
    let (_server, address) = serve_on(&scheduler, app, |it| it);
    let client = scheduler.spawn(async move |cx: Cx| {
        let stream = tokio::net::TcpStream::connect(address).await?;
        let (mut requests, connection) =
            hyper::client::conn::http2::handshake(Spawns(cx.clone()), TokioIo::new(stream)).await?;
        cx.spawn(async move |_: Cx| {
            connection.await?;
            Ok(())
        })?;
        for _ in 0..4 {
            let request = Request::get("http://here/").body(Empty::<Bytes>::new())?;
            let answer = requests.send_request(request).await?;
            assert_eq!(answer.into_body().collect().await?.to_bytes(), "hello");
        }
        ok(())
    });
    result(client.unwrap());
    assert_eq!(pids.lock().unwrap().len(), 4);
}

/// Starts processes for hyper's client.
#[derive(Clone)]
pub(crate) struct Spawns(pub(crate) Cx);

impl<F> hyper::rt::Executor<F> for Spawns
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        let started = self.0.context().spawn(async move |_: Cx| {
            future.await;
            Ok(())
        });
        drop(started.unwrap());
    }
}

// pins: I11
#[test]
fn a_panic_of_the_app_ends_its_connection_alone() {
    let (scheduler, _) = start(2);
    let app = service_fn(|request: Request<Incoming>| {
        assert!(request.uri().path() == "/", "a path of the app's");
        hello(request)
    });
    let (server, address) = serve_on(&scheduler, app, |it| it);
    let other = connect(address);
    drop(ask(&other));
    let mut client = connect(address);
    client
        .write_all(b"GET /panics HTTP/1.1\r\nhost: here\r\n\r\n")
        .unwrap();
    assert_eq!(read_all(&client), "");
    drop(ask(&other));
    assert!(!server.is_finished());
}

// pins: I11
#[test]
fn no_more_connections_than_the_limit_are_open_and_the_next_one_waits() {
    let (scheduler, _) = start(2);
    let (_server, address) = serve_on(&scheduler, service_fn(hello), |it| it.max_connections(2));
    let (one, two, mut three) = (connect(address), connect(address), connect(address));
    drop((ask(&one), ask(&two)));
    three.write_all(GET).unwrap();
    // The system keeps the third request. The server serves the other two meanwhile.
    three.set_read_timeout(Some(ms(50))).unwrap();
    let waits = three.read(&mut [0]).unwrap_err().kind();
    assert!(matches!(waits, ErrorKind::WouldBlock | ErrorKind::TimedOut));
    drop((ask(&one), ask(&two)));
    drop(one);
    three.set_read_timeout(Some(PATIENCE)).unwrap();
    three.read_exact(&mut [0; 15]).unwrap();
}

// pins: I11
#[test]
fn a_client_without_a_whole_head_or_without_a_next_request_is_closed_in_time() {
    const TIME: Duration = ms(50);
    let (scheduler, _) = start(2);
    let for_heads = |it: Serve<_, _, _>| it.header_timeout(TIME).idle_timeout(PATIENCE);
    let (_one, address) = serve_on(&scheduler, service_fn(hello), for_heads);
    for sent in ["", "GET / HT"] {
        let begin = Instant::now();
        let mut client = connect(address);
        client.write_all(sent.as_bytes()).unwrap();
        assert_eq!(read_all(&client), "");
        assert!(begin.elapsed() >= TIME, "{sent}");
    }
    // The time-out of heads differs from the time-out between two requests.
    let mut client = connect(address);
    drop(ask(&client));
    thread::sleep(2 * TIME); // It is to be too late for a head.
    drop(ask(&client));
    client.write_all(b"GET").unwrap();
    assert_eq!(read_all(&client), "");

    let for_idle = |it: Serve<_, _, _>| it.idle_timeout(TIME).header_timeout(PATIENCE);
    let (_other, address) = serve_on(&scheduler, service_fn(hello), for_idle);
    let client = connect(address);
    let begin = Instant::now();
    drop(ask(&client));
    assert_eq!(read_all(&client), "");
    assert!(begin.elapsed() >= TIME);
}

/// A body that tells when it is dropped.
struct Kept(Sender<()>);

impl Drop for Kept {
    fn drop(&mut self) {
        // The test may be over.
        let _ = self.0.send(());
    }
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &[7; 8 << 20]
    }
}

// pins: I11
#[test]
fn clients_that_do_not_read_keep_no_answers() {
    let (scheduler, _) = start(2);
    let (send, given_back) = channel();
    let send = Mutex::new(send);
    let app = service_fn(move |_| {
        let kept = Kept(send.lock().unwrap().clone());
        ready(Ok::<_, BoxError>(Response::new(Full::new(
            Bytes::from_owner(kept),
        ))))
    });
    let app = Arc::new(app);
    let app = service_fn(move |request| hyper::service::Service::call(&*app, request));
    let (_server, address) = serve_on(&scheduler, app, |it| it.write_timeout(ms(50)));
    let clients: Vec<_> = (0..20).map(|_| connect(address)).collect();
    for mut client in &clients {
        client.write_all(GET).unwrap();
    }
    for _ in &clients {
        given_back.recv_timeout(PATIENCE).unwrap();
    }
}

// pins: I11
#[test]
fn a_connection_is_asked_whether_it_lives() {
    let (scheduler, _) = start(1);
    let task = scheduler.spawn(async |_: Cx| {
        let mut listener = TcpListener::bind("127.0.0.1:0").await?;
        let _client = connect(listener.local_addr()?);
        let (stream, peer) = Listener::accept(&mut listener).await?;
        assert_eq!(peer, Some(stream.peer_addr()?));
        let socket = socket2::SockRef::from(&stream);
        ok(socket.keepalive()? && socket.tcp_nodelay()?)
    });
    assert_eq!(result(task.unwrap()).as_bool(), Some(true));
}

// pins: I11
#[test]
fn a_server_is_awaited_by_a_process() {
    let (scheduler, handle) = start(1);
    let (send, awaited) = channel();
    handle.spawn(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let refused = serve(listener, service_fn(hello)).await.unwrap_err();
        send.send(refused.to_string()).unwrap();
    });
    let refused = awaited.recv_timeout(PATIENCE).unwrap();
    assert!(refused.contains("in a task of the scheduler"), "{refused}");
    drop(scheduler);
}
