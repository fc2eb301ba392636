//! The end of the web server: no client is cut off.

use crate::serve::{Answer, GET, connect, get, read_all, serve_on};
use crate::support::{PATIENCE, ms, ok, result, start, until};
use ganger_proc_api::{BoxError, ExitReason};
use ganger_task::Cx;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use std::future::ready;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread;
use tokio::sync::Semaphore;

/// Answers when it is let. Counts waiting clients.
#[derive(Clone)]
struct Gate {
    waits: Arc<AtomicUsize>,
    opens: Arc<Semaphore>,
}

impl Gate {
    fn closed() -> Self {
        let (waits, opens) = (Arc::default(), Arc::new(Semaphore::new(0)));
        Self { waits, opens }
    }

    async fn answer(self, _: Request<Incoming>) -> Answer {
        // Ordering: Relaxed: a count.
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.opens.acquire().await?.forget();
        Ok(Response::new("hello".into()))
    }

    fn until_waits(&self, count: usize) {
        // Ordering: Relaxed: a count.
        until("all wait for their answers", || {
            self.waits.load(Ordering::Relaxed) == count
        });
    }

    fn open(&self) {
        self.opens.add_permits(1000);
    }
}

/// Begins a request, and leaves its answer to the caller.
fn begin(address: SocketAddr) -> TcpStream {
    let mut client = connect(address);
    client.write_all(GET).unwrap();
    client
}

fn until_refused(address: SocketAddr) {
    until("the listener is closed", || {
        TcpStream::connect(address).is_err_and(|it| it.kind() == ErrorKind::ConnectionRefused)
    });
}

// pins: I11, I4
#[test]
fn a_stop_cuts_no_client_off() {
    let (scheduler, _) = start(2);
    let gate = Gate::closed();
    let app = service_fn({
        let gate = gate.clone();
        move |request| gate.clone().answer(request)
    });
    let (server, address) = serve_on(&scheduler, app, |it| it);
    let idle = connect(address);
    // The server accepts them in their order.
    let clients: Vec<_> = (0..30).map(|_| begin(address)).collect();
    gate.until_waits(30);
    let stop = thread::spawn(move || scheduler.stop(PATIENCE).unwrap());
    until_refused(address);
    gate.open();
    for client in clients {
        let answer = read_all(&client);
        assert!(
            answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("hello"),
            "{answer}"
        );
        assert!(answer.contains("connection: close"), "{answer}");
    }
    assert_eq!(read_all(&idle), "");
    let report = stop.join().unwrap();
    assert_eq!((report.forced, report.stuck.len()), (0, 0), "{report:?}");
    assert!(server.wait().is_done());
}

/// Cancels a server, and keeps the scheduler.
// pins: I11
#[test]
fn a_cancelled_server_ends_after_its_connections() {
    let (scheduler, _) = start(2);
    let gate = Gate::closed();
    let app = service_fn({
        let gate = gate.clone();
        move |request| gate.clone().answer(request)
    });
    let (server, address) = serve_on(&scheduler, app, |it| it);
    let client = begin(address);
    gate.until_waits(1);
    scheduler.cancel(server.pid(), "enough").unwrap();
    until_refused(address);
    assert!(!server.is_finished());
    gate.open();
    assert!(read_all(&client).ends_with("hello"));
    assert!(matches!(
        server.wait_timeout(PATIENCE),
        Ok(ExitReason::Done(_))
    ));
}

/// Answers a client with a request under way at the end.
// pins: I11
#[test]
fn a_request_that_is_under_way_at_the_end_is_answered() {
    let (scheduler, _) = start(2);
    let gate = Gate::closed();
    gate.open();
    let app = service_fn(move |request| gate.clone().answer(request));
    let (server, address) = serve_on(&scheduler, app, |it| it.max_connections(10));
    assert!(get(address).ends_with("hello"));
    let mut late = connect(address);
    // The server has accepted the connection when it has answered a later client.
    assert!(get(address).ends_with("hello"));
    scheduler.cancel(server.pid(), "enough").unwrap();
    until_refused(address);
    late.write_all(GET).unwrap();
    assert!(read_all(&late).ends_with("hello"));
    assert!(server.wait().is_done());
}

/// Announces the close of the connection in an answer, also of an app that is ready at once. The
/// client learns of the close, and sends no further request, whose answer would be cut off.
// pins: I11
#[test]
fn an_answer_after_the_request_to_finish_says_that_the_connection_closes() {
    let (scheduler, _) = start(2);
    let server_pid = Arc::new(OnceLock::new());
    let app = service_fn({
        let (handle, server_pid) = (scheduler.handle(), Arc::clone(&server_pid));
        move |_: Request<Incoming>| {
            let cancelled = handle.cancel(*server_pid.wait(), "enough");
            let answer = cancelled.map(|_| Response::new(Full::from("hello")));
            ready::<Answer>(answer.map_err(BoxError::from))
        }
    });
    let (server, address) = serve_on(&scheduler, app, |it| it);
    server_pid.set(server.pid()).unwrap();
    let answer = read_all(&begin(address));
    assert!(answer.ends_with("hello"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    assert!(server.wait().is_done());
}

// pins: I11
#[test]
fn what_is_left_at_the_deadline_is_cut_off() {
    let (scheduler, _) = start(2);
    let gate = Gate::closed();
    let app = service_fn({
        let gate = gate.clone();
        move |request| gate.clone().answer(request)
    });
    let (_server, address) = serve_on(&scheduler, app, |it| it);
    let mut client = begin(address);
    gate.until_waits(1);
    let report = scheduler.stop(ms(100)).unwrap();
    assert!(report.forced > 0 && report.stuck.is_empty(), "{report:?}");
    let ended = client.read(&mut [0]);
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
}

/// Ends a server of another library, with the signal as its graceful shutdown: spawned on the
/// runtime, where a wait of the task would panic.
// pins: P10, I5
#[test]
fn a_cancel_signal_ends_what_is_spawned_on_the_runtime() {
    let (scheduler, _) = start(2);
    let (send, started) = channel();
    let task = scheduler.spawn(async move |cx: Cx| {
        let asked = cx.cancel_signal();
        let other = tokio::spawn(async move {
            asked.await;
            7_u64
        });
        send.send(())?;
        let other = other.await?;
        ok(other)
    });
    let task = task.unwrap();
    started.recv().unwrap();
    scheduler.cancel(task.pid(), "enough").unwrap();
    assert_eq!(result(task).as_u64(), Some(7));
}
