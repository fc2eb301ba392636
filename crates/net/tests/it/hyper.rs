//! hyper's servers and clients on streams and processes alone.

use crate::simulated::simulate;
use crate::support::{connect, ms, ok, read_some, result, start, until};
use bytes::Bytes;
use ganger_net::hyper::Rt;
use ganger_net::sim::Faults;
use ganger_net::{Stream, TcpListener, TcpStream, Transport, UnixStream};
use ganger_proc_api::BoxError;
use ganger_sched::ContextExt;
use ganger_task::Cx;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1 as client1, http2 as client2};
use hyper::rt::Timer;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SERVER: &str = "10.0.0.1:80";

/// Answers with the bytes of the request, twice.
async fn twice(request: Request<Incoming>) -> hyper::Result<Response<Full<Bytes>>> {
    let body = request.into_body().collect().await?.to_bytes();
    let body = [&body[..], &body[..]].concat();
    Ok(Response::new(Full::new(body.into())))
}

/// Serves a connection, whose client may take `patience` for a head.
async fn serve<T: Transport>(stream: Stream<T>, patience: Duration) -> Result<(), BoxError> {
    let mut server = http1::Builder::new();
    server.timer(Rt::current()?).header_read_timeout(patience);
    let connection = server.serve_connection(stream, service_fn(twice));
    Ok(connection.await?)
}

/// Sends bodies of these lengths on a single connection, in turn.
async fn ask<T: Transport>(cx: &Cx, stream: Stream<T>, lengths: &[usize]) -> Result<(), BoxError> {
    let (mut requests, connection) = client1::handshake(stream).await?;
    let asks = async move {
        for &length in lengths {
            let body: Bytes = (0..=250).cycle().take(length).collect();
            let request = Request::post("/").body(Full::new(body.clone()))?;
            requests.ready().await?;
            let answer = requests.send_request(request).await?;
            let answer = answer.into_body().collect().await?.to_bytes();
            assert!(answer[..length] == body && answer[length..] == body);
        }
        // The connection ends without its handle.
        drop(requests);
        ok(())
    };
    let (connected, asked) = cx.join((connection, asks)).await;
    asked?;
    Ok(connected?)
}

/// Keeps both ends of a connection through all requests, and ends them cleanly.
async fn keeps_alive(cx: Cx) -> Result<(), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let stream = TcpStream::connect(listener.local_addr()?).await?;
    let (served, _) = listener.accept().await?;
    let lengths = [0, 1, 70_000, 4 << 20, 3];
    let both = cx.join((serve(served, ms(60_000)), ask(&cx, stream, &lengths)));
    let (server, client) = both.await;
    server?;
    client?;
    let (one, other) = UnixStream::pair()?;
    let both = cx.join((serve(one, ms(60_000)), ask(&cx, other, &lengths)));
    let (server, client) = both.await;
    server?;
    client
}

// pins: I12
#[test]
fn a_connection_is_kept_and_carries_large_bodies_both_ways() {
    let (scheduler, net) = start(2);
    result(scheduler.spawn(keeps_alive).unwrap());
    assert_eq!(net.sockets(), 0);
}

/// Serves clients that send half a head, or half a body, or read no answer, and break the
/// connection.
// pins: I12
#[test]
fn a_client_that_vanishes_ends_its_connection_alone() {
    let (scheduler, net) = start(2);
    let listener = net.enter(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let failed = Arc::new(AtomicUsize::new(0));
    let server = {
        let failed = Arc::clone(&failed);
        scheduler.spawn(async move |cx: Cx| {
            let incoming = listener.incoming(2);
            while let Ok(accepted) = cx.until_cancelled(incoming.accept()).await {
                let (stream, _) = accepted?;
                let failed = Arc::clone(&failed);
                cx.spawn(async move |_: Cx| {
                    if serve(stream, ms(60_000)).await.is_err() {
                        // Ordering: Relaxed: a count alone.
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                    ok(())
                })?;
            }
            incoming.drain().await;
            ok(())
        })
    };
    let server = server.unwrap();
    let beginnings = [
        "POST / HTTP/1.1\r\nhost",
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nfive.",
    ];
    for beginning in beginnings {
        let mut client = connect(address);
        client.write_all(beginning.as_bytes()).unwrap();
        let socket = socket2::SockRef::from(&client);
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }
    // Ordering: Relaxed: a count alone.
    until("both fail", || failed.load(Ordering::Relaxed) == 2);
    // A request whose answer is more than fits.
    let mut client = connect(address);
    let head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 8388608\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    client.write_all(&vec![7; 8 << 20]).unwrap();
    let mut byte = [0; 15];
    assert_eq!(read_some(&client, &mut byte).unwrap(), 15);
    drop(client);
    // Ordering: Relaxed: a count alone.
    until("three fail", || failed.load(Ordering::Relaxed) == 3);
    let client = scheduler.spawn(async move |cx: Cx| {
        let stream = TcpStream::connect(address).await?;
        ask(&cx, stream, &[5, 5]).await
    });
    result(client.unwrap());
    scheduler.cancel(server.pid(), "enough").unwrap();
    result(server);
    assert_eq!(net.sockets(), 0);
}

/// Answers a client after the end of its writes, when the server allows half-open connections.
// pins: I12
#[test]
fn a_half_open_connection_is_answered_and_ends() {
    let (scheduler, net) = start(2);
    let listener = net.enter(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let server = scheduler.spawn(async move |cx: Cx| {
        let (stream, _) = listener.accept().await?;
        let late = service_fn(move |request| {
            let sleep = cx.sleep(ms(20));
            async move {
                sleep.await.unwrap();
                twice(request).await
            }
        });
        let mut server = http1::Builder::new();
        let connection = server.half_close(true).serve_connection(stream, late);
        Ok(connection.await?)
    });
    let mut client = connect(address);
    let request = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nhalf";
    client.write_all(request.as_bytes()).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let (mut answer, mut buffer) = (Vec::new(), [0; 256]);
    while let length @ 1.. = read_some(&client, &mut buffer).unwrap() {
        answer.extend_from_slice(&buffer[..length]);
    }
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("halfhalf"));
    result(server.unwrap());
    assert_eq!(net.sockets(), 0);
}

/// Runs each stream of HTTP/2 in a child of the connection's process.
// pins: I12
#[test]
fn streams_of_http2_are_processes() {
    let (scheduler, net) = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let (one, other) = UnixStream::pair()?;
        let served = cx.spawn(async |cx: Cx| {
            let parent = cx.pid();
            let service = service_fn(move |_: Request<Incoming>| async move {
                let own = ganger_sched::internal::here::pid();
                let is_child = own.is_some_and(|own| own != parent);
                let body = Bytes::from(is_child.to_string());
                Ok::<_, hyper::Error>(Response::new(Full::new(body)))
            });
            let rt = Rt::current()?;
            let mut server = http2::Builder::new(rt.clone());
            server.timer(rt).keep_alive_interval(Some(ms(5)));
            Ok(server.serve_connection(one, service).await?)
        })?;
        let ended = cx.monitor(served.pid());
        let rt = Rt::current()?;
        let (requests, connection) = client2::handshake(rt, other).await?;
        let client = cx.spawn(async move |_: Cx| Ok(connection.await?))?;
        let mut answers = Vec::new();
        for _ in 0..50 {
            let request = Request::get("http://a/").body(Full::<Bytes>::default())?;
            let answer = requests.clone().send_request(request);
            answers.push(cx.timeout(ms(60_000), answer));
        }
        for answer in answers {
            let body = answer.await??.into_body().collect().await?.to_bytes();
            assert_eq!(body, "true");
        }
        drop(requests);
        let client = cx.monitor(client.pid());
        client.await?;
        ended.await?;
        ok(())
    });
    result(task.unwrap());
    until("the streams end", || scheduler.stats().live == 0);
    assert_eq!(net.sockets(), 0);
}

// pins: I12
#[test]
fn a_sleep_is_never_early_and_its_drop_takes_the_timer_back() {
    let (scheduler, _) = start(2);
    let task = scheduler.spawn(async |cx: Cx| {
        let rt = Rt::current()?;
        let before = rt.now();
        rt.sleep(ms(5)).await;
        rt.sleep_until(before + ms(10)).await;
        assert!(rt.now() - before >= ms(10));
        // Moments in the past.
        rt.sleep_until(before).await;
        rt.sleep(ms(0)).await;
        let mut sleeps = (
            rt.sleep(ms(3_600_000)),
            rt.sleep_until(before + ms(3_600_000)),
        );
        let timeout = cx.timeout(ms(1), cx.join((&mut sleeps.0, &mut sleeps.1)));
        assert!(timeout.await.is_err());
        // Another waker: the waker of a thread.
        let other = rt.clone();
        let thread = std::thread::spawn(move || {
            let sleep = other.sleep(ms(2));
            futures_util::FutureExt::now_or_never(sleep).is_none()
        });
        assert!(cx.context().blocking(|| thread.join()).unwrap());
        drop(sleeps);
        ok(())
    });
    result(task.unwrap());
    let stats = scheduler.timers().stats();
    assert_eq!(
        (stats.pending, stats.cancelled >= 3),
        (0, true),
        "{stats:?}"
    );
}

/// Calls the last waker of a sleep once, wherever the sleep has moved.
// pins: I12
#[test]
fn a_sleep_wakes_who_polled_last_also_at_the_halt() {
    struct Count(AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            // Ordering: Relaxed: a count alone.
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (scheduler, _) = start(1);
    let (send, receive) = std::sync::mpsc::channel();
    let task = scheduler.spawn(async move |_: Cx| {
        let rt = Rt::current()?;
        send.send((rt.sleep(ms(2)), rt.sleep(ms(3_600_000))))?;
        ok(())
    });
    result(task.unwrap());
    let (mut soon, mut never) = receive.recv().unwrap();
    let [first, last] = [0, 1].map(|_| Arc::new(Count(AtomicUsize::new(0))));
    for count in [&first, &last] {
        let waker = std::task::Waker::from(Arc::clone(count));
        let mut context = std::task::Context::from_waker(&waker);
        let _ = soon.as_mut().poll(&mut context);
        assert!(never.as_mut().poll(&mut context).is_pending());
    }
    let waker = std::task::Waker::from(Arc::clone(&last));
    let mut context = std::task::Context::from_waker(&waker);
    until("a sleep ends", || {
        soon.as_mut().poll(&mut context).is_ready()
    });
    drop(scheduler);
    // The last worker ends the timers when it counts no more: the stop need not wait for this.
    until("the other sleep ends", || {
        never.as_mut().poll(&mut context).is_ready()
    });
    // Ordering: Relaxed: a count alone.
    let woken = [first, last].map(|count| count.0.load(Ordering::Relaxed));
    // The first sleep may have ended before the second poll.
    assert!(woken[1] >= 1 && woken[0] <= 1, "{woken:?}");
}

// pins: I12
#[test]
fn a_thread_without_a_process_has_no_timer() {
    let error = Rt::current().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Other);
    assert!(error.to_string().contains("no process"));
}

// pins: I8, I12
#[test]
fn the_same_happens_in_a_simulation() {
    simulate(40, &Faults::some(), |rt, _| {
        let server = rt.spawn(async |_: Cx| {
            let listener = TcpListener::bind(SERVER)?;
            serve(listener.accept().await?.0, ms(600_000)).await
        });
        let server = server.unwrap();
        rt.settle();
        let client = rt.spawn(async |cx: Cx| {
            let stream = TcpStream::connect(SERVER).await?;
            ask(&cx, stream, &[0, 700, 70_000, 3]).await
        });
        rt.wait(client.unwrap()).into_result().unwrap();
        rt.wait(server).into_result().unwrap();
    });
}

// pins: I8, I12
#[test]
fn a_moment_of_hyper_is_met_exactly_in_virtual_time() {
    simulate(1, &Faults::default(), |rt, _| {
        let task = rt.spawn(async |cx: Cx| {
            let rt = Rt::current()?;
            let begin = rt.now();
            cx.sleep(ms(20_000)).await?;
            rt.sleep_until(begin + ms(50_000)).await;
            rt.sleep(ms(10_000)).await;
            ok(rt.now() - begin)
        });
        let took = rt.wait(task.unwrap()).take::<Duration>().unwrap();
        assert!(took >= ms(60_000) && took < ms(60_001), "{took:?}");
    });
}

/// Passes the time-outs of hyper in virtual time, to the millisecond.
// pins: I8, I12
#[test]
fn a_client_that_says_nothing_is_given_up_in_virtual_time() {
    simulate(20, &Faults::default(), |rt, _| {
        let server = rt.spawn(async |_: Cx| {
            let listener = TcpListener::bind(SERVER)?;
            let served = serve(listener.accept().await?.0, ms(30_000)).await;
            ok(served.unwrap_err().downcast::<hyper::Error>()?.is_timeout())
        });
        let server = server.unwrap();
        rt.settle();
        let begin = rt.now();
        let client = rt.spawn(async |_: Cx| {
            let stream = TcpStream::connect(SERVER).await?;
            stream.write_all(b"GET / HT").await?;
            let mut rest = Vec::new();
            let mut byte = [0];
            while let Ok(1) = stream.read(&mut byte).await {
                rest.push(byte[0]);
            }
            ok(rest.len() as u64)
        });
        rt.wait(client.unwrap());
        let took = rt.now() - begin;
        assert!(took >= ms(30_000) && took < ms(30_500), "{took:?}");
        assert_eq!(rt.wait(server).into_result().unwrap().as_bool(), Some(true));
    });
}
