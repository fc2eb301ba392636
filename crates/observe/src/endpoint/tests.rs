//! The endpoint in a simulated network, where deadlines pass in virtual time.

use super::access::Access;
use super::connection;
use super::limits::{ANSWER, CONNECTIONS, LINGER, MAKE, REFUSALS, REQUEST};
use super::observed::Observed;
use super::site::Site;
use super::{OWN, maker, passes, run, stream, windows};
use ganger_net::sim::{Faults, SimNet};
use ganger_net::{TcpListener, TcpStream};
use ganger_proc_api::{BoxError, Pid};
use ganger_sched::ContextExt as _;
use ganger_sim::{Rt, Sim};
use ganger_task::Cx;
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

pub(super) const ADDRESS: &str = "10.0.0.1:80";

pub(super) const TOKEN: &str = "0123456789abcdef";

/// A request of a client that then waits for the end.
const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: 10.0.0.1\r\nconnection: close\r\n\r\n";

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn access() -> Access {
    Access::new(Vec::new(), Some(TOKEN.to_owned()), 80)
}

/// Runs a test with an endpoint for the simulated scheduler. `server` is its PID.
pub(super) fn simulate(seeds: u64, faults: &Faults, test: impl Fn(&Rt<'_>, Pid)) {
    within(seeds, faults, |rt| {
        let observed = Arc::new(Observed::default());
        observed.add(rt);
        let server = rt.spawn(async move |cx: Cx| {
            let listener = TcpListener::bind(ADDRESS)?;
            run(cx, listener, access(), observed, None).await
        });
        let server = server.unwrap();
        rt.settle();
        test(rt, server.pid());
        let _ = rt.cancel(server.pid(), "enough");
        rt.wait(server);
    });
}

fn within(seeds: u64, faults: &Faults, test: impl Fn(&Rt<'_>)) {
    Sim::new(0)
        .builder(SimNet::add_to)
        .check_seeds(seeds, |rt| {
            let net = SimNet::of(rt).unwrap();
            net.set_faults(rt.choose(1 << 30) as u64, faults.clone());
            net.enter(|| test(rt));
        });
}

/// Reads to the end.
async fn rest(stream: &TcpStream) -> String {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        all.extend_from_slice(&buffer[..length]);
    }
    String::from_utf8(all).unwrap()
}

async fn exchange(request: impl AsRef<[u8]>) -> Result<String, BoxError> {
    let stream = TcpStream::connect(ADDRESS).await?;
    stream.write_all(request.as_ref()).await?;
    Ok(rest(&stream).await)
}

/// Returns the answer to a request, and the virtual time that it takes.
fn timed(rt: &Rt<'_>, request: impl AsRef<[u8]> + Send + 'static) -> (String, Duration) {
    let begin = rt.now();
    let client = rt.spawn(async move |_: Cx| exchange(request).await);
    let answer = rt.wait(client.unwrap()).take::<String>().unwrap();
    (answer, rt.now() - begin)
}

#[track_caller]
fn takes(took: Duration, time: Duration) {
    assert!(took >= time && took < time + ms(500), "{took:?}");
}

// pins: V3
#[test]
fn requests_are_answered_on_a_bad_network() {
    simulate(20, &Faults::some(), |rt, _| {
        let (health, _) = timed(rt, HEALTH);
        assert!(health.starts_with("HTTP/1.1 200 OK") && health.ends_with("alive\n"));
        let list = format!(
            "GET /api/v1/processes?filter=task HTTP/1.1\r\nhost: 10.0.0.1\r\n\
             authorization: Bearer {TOKEN}\r\nconnection: close\r\n\r\n"
        );
        let (list, _) = timed(rt, list);
        assert!(list.contains("\"matched\":"), "{list}");
        let body = "token=0123456789abcdef";
        let log_in = format!(
            "POST /login HTTP/1.1\r\nhost: 10.0.0.1\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let (log_in, _) = timed(rt, log_in);
        assert!(log_in.contains("set-cookie: ganger_80="), "{log_in}");
    });
}

// pins: V3
#[test]
fn a_client_that_says_nothing_is_left_after_the_time_of_a_request() {
    simulate(5, &Faults::default(), |rt, _| {
        let (answer, took) = timed(rt, "");
        assert_eq!(answer, "");
        takes(took, REQUEST);
    });
}

// pins: V3
#[test]
fn a_client_that_is_slow_with_a_head_is_told_so() {
    simulate(5, &Faults::default(), |rt, _| {
        let (answer, took) = timed(rt, "GET /healthz HT");
        assert!(
            answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"),
            "{answer}"
        );
        assert!(answer.ends_with("within 5 s: send it again\n"));
        takes(took, REQUEST);
        // A byte a second is no more than none.
        let begin = rt.now();
        let client = rt.spawn(async |cx: Cx| {
            let (reads, writes) = TcpStream::connect(ADDRESS).await?.split();
            cx.spawn(async move |cx: Cx| {
                for byte in HEALTH.as_bytes() {
                    writes.write_all(&[*byte]).await?;
                    cx.sleep(ms(1_000)).await?;
                }
                Ok(())
            })?;
            let mut first = [0; 12];
            reads.read_exact(&mut first).await?;
            assert_eq!(&first, b"HTTP/1.1 408");
            Ok(())
        });
        rt.wait(client.unwrap()).into_result().unwrap();
        takes(rt.now() - begin, REQUEST);
    });
}

// pins: V3
#[test]
fn a_client_that_is_slow_with_a_body_is_told_so() {
    simulate(5, &Faults::default(), |rt, _| {
        let request = "POST /login HTTP/1.1\r\nhost: 10.0.0.1\r\ncontent-length: 22\r\n\r\ntok";
        let (answer, took) = timed(rt, request);
        assert!(
            answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"),
            "{answer}"
        );
        assert!(answer.contains("connection: close\r\n"));
        assert!(answer.ends_with("within 5 s: send it again\n"));
        takes(took, REQUEST);
    });
}

// pins: V3
#[test]
fn a_client_that_does_not_read_is_left_after_the_time_of_an_answer() {
    simulate(3, &Faults::default(), |rt, _| {
        let begin = rt.now();
        let client = rt.spawn(async |cx: Cx| {
            let stream = TcpStream::connect(ADDRESS).await?;
            let request = "GET /healthz HTTP/1.1\r\nhost: 10.0.0.1\r\n\r\n";
            // More than the connection takes in both directions.
            let requests = request.repeat(8_000);
            let error = stream.write_all(requests.as_bytes()).await.unwrap_err();
            cx.sleep(ms(1)).await?;
            Ok(error.to_string())
        });
        rt.wait(client.unwrap()).into_result().unwrap();
        takes(rt.now() - begin, ANSWER);
        assert_eq!(rt.stats().live, OWN);
        assert!(timed(rt, HEALTH).0.ends_with("alive\n"));
    });
}

/// Opens a connection for each place. The connections stay open until the returned process is
/// cancelled.
fn fill(rt: &Rt<'_>) -> Pid {
    let client = rt.spawn(async |cx: Cx| {
        let mut open = Vec::new();
        for _ in 0..CONNECTIONS {
            let stream = TcpStream::connect(ADDRESS).await?;
            stream
                .write_all(b"GET /healthz HTTP/1.1\r\nhost: 10.0.0.1\r\n\r\n")
                .await?;
            stream.read_exact(&mut [0; 12]).await?;
            open.push(stream);
        }
        cx.cancelled().await;
        Ok(())
    });
    let client = client.unwrap().pid();
    rt.run_for(ms(500));
    assert_eq!(rt.stats().live, OWN + CONNECTIONS + 1);
    client
}

// pins: V3
#[test]
fn a_connection_over_the_limit_is_told_so_until_a_place_is_free() {
    simulate(3, &Faults::default(), |rt, _| {
        let full = fill(rt);
        for request in [HEALTH, ""] {
            let (answer, took) = timed(rt, request);
            assert!(
                answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"),
                "{answer}"
            );
            assert!(answer.ends_with("try again later\n"));
            assert!(took < ms(100), "{took:?}");
        }
        rt.cancel(full, "enough").unwrap();
        rt.run_for(ms(500));
        assert!(timed(rt, HEALTH).0.ends_with("alive\n"));
    });
}

/// Checks that an answer arrives while its client is still writing.
// pins: V3
#[test]
fn an_answer_before_the_end_of_a_request_arrives() {
    simulate(10, &Faults::some(), |rt, _| {
        let head = "POST /login HTTP/1.1\r\nhost: 10.0.0.1\r\ncontent-length: 300000\r\n\r\n";
        let request = [head.as_bytes(), &[7; 300_000]].concat();
        let (answer, _) = timed(rt, request);
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(answer.ends_with("no request here needs more\n"));
    });
}

/// Returns the number of connections that have a process.
fn held(rt: &Rt<'_>) -> usize {
    let processes = rt.processes();
    let held = processes
        .iter()
        .filter(|it| it.type_name.contains("connection::accept"));
    held.count()
}

// pins: V3
#[test]
fn a_flood_holds_no_more_than_the_limits() {
    simulate(3, &Faults::default(), |rt, _| {
        let stays = async |cx: Cx| {
            let stream = TcpStream::connect(ADDRESS).await?;
            let answer = rest(&stream).await;
            cx.sleep(2 * LINGER).await?;
            Ok(answer)
        };
        let flood: Vec<_> = (0..300).map(|_| rt.spawn(stays).unwrap()).collect();
        let mut most = 0;
        for _ in 0..200 {
            rt.run_for(ms(1));
            most = most.max(held(rt));
        }
        assert_eq!(most, CONNECTIONS + REFUSALS);
        let answers = flood
            .into_iter()
            .map(|it| rt.wait(it).take::<String>().unwrap());
        let refused = answers.filter(|it| it.starts_with("HTTP/1.1 503 ")).count();
        assert!(refused >= 100, "{refused}");
        rt.run_for(2 * LINGER);
        assert_eq!((held(rt), rt.stats().live), (0, OWN));
        assert!(timed(rt, HEALTH).0.ends_with("alive\n"));
    });
}

// pins: V3
#[test]
fn a_refused_client_that_stays_is_left() {
    simulate(3, &Faults::default(), |rt, _| {
        let full = fill(rt);
        let begin = rt.now();
        let client = rt.spawn(async |_: Cx| {
            let stream = TcpStream::connect(ADDRESS).await?;
            // The answer is read, and the connection kept and fed.
            assert!(rest(&stream).await.contains("503"));
            while stream.write_all(&[7; 16_384]).await.is_ok() {}
            Ok(())
        });
        rt.wait(client.unwrap()).into_result().unwrap();
        assert!(
            rt.now() - begin <= LINGER + ms(500),
            "{:?}",
            rt.now() - begin
        );
        let _ = rt.cancel(full, "enough");
    });
}

/// Keeps all questions.
async fn never<M: Send + 'static>(cx: Cx<M>) -> Result<(), BoxError> {
    let mut all = Vec::new();
    while let Some(ask) = cx.recv().await {
        all.push(ask);
    }
    Ok(())
}

// pins: V3
#[test]
fn an_answer_that_can_not_be_made_in_time_is_refused() {
    within(3, &Faults::default(), |rt| {
        let server = rt.spawn(async |cx: Cx| {
            let site = Site {
                access: Access::new(Vec::new(), None, 80),
                observed: Arc::default(),
                maker: cx.spawn(never::<maker::Ask>)?,
                events: cx.spawn(never::<stream::Join>)?,
                streams: stream::Places::default(),
                passes: cx.spawn(never::<passes::Ask>)?,
                windows: cx.spawn(never::<windows::Ask>)?,
                tracing: Arc::default(),
            };
            let listener = TcpListener::bind(ADDRESS)?;
            connection::accept(cx, listener, Arc::new(site)).await
        });
        let server = server.unwrap();
        rt.settle();
        for path in ["snapshot", "processes"] {
            let request = format!("GET /api/v1/{path} HTTP/1.1\r\nhost: 10.0.0.1\r\n");
            let (answer, took) = timed(rt, request + "connection: close\r\n\r\n");
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
            assert!(answer.ends_with("ask for less, or later\n"));
            takes(took, MAKE);
        }
        rt.cancel(server.pid(), "enough").unwrap();
        rt.wait(server);
    });
}

#[test]
fn an_endpoint_without_its_maker_says_so() {
    simulate(3, &Faults::default(), |rt, _| {
        let processes = rt.processes();
        let maker = processes.iter().find(|it| it.type_name.contains("run"));
        let makers = processes.iter().filter(|it| it.parent.is_some());
        assert_eq!(makers.clone().count(), OWN - 1, "{maker:?}");
        for maker in makers {
            rt.terminate(maker.pid).unwrap();
        }
        rt.settle();
        let request = format!(
            "GET /api/v1/snapshot HTTP/1.1\r\nhost: 10.0.0.1\r\n\
             authorization: Bearer {TOKEN}\r\nconnection: close\r\n\r\n"
        );
        let (answer, _) = timed(rt, request);
        assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
        assert!(answer.ends_with("start it again\n"));
        assert!(timed(rt, HEALTH).0.ends_with("alive\n"));
    });
}

#[test]
fn a_stop_ends_all_connections_at_once() {
    simulate(3, &Faults::default(), |rt, _| {
        let begin = rt.now();
        let clients: Vec<_> = ["", "GET /hea", HEALTH]
            .into_iter()
            .map(|request| {
                rt.spawn(async move |_: Cx| exchange(request).await)
                    .unwrap()
            })
            .collect();
        rt.run_for(ms(100));
        assert_eq!(rt.stop(ms(1_000)).forced, 0);
        for client in clients {
            let _ = rt.wait(client);
        }
        assert!(rt.now() - begin < ms(1_000));
    });
}

// pins: V3
#[test]
fn a_client_that_ends_its_writes_has_its_connection_closed() {
    simulate(5, &Faults::default(), |rt, _| {
        let client = rt.spawn(async |_: Cx| {
            let stream = TcpStream::connect(ADDRESS).await?;
            stream.write_all(b"GET /healthz HTTP/1.1\r\nho").await?;
            stream.shutdown(Shutdown::Write)?;
            Ok(rest(&stream).await)
        });
        let begin = rt.now();
        let answer = rt.wait(client.unwrap()).take::<String>().unwrap();
        assert!(!answer.contains("200"), "{answer}");
        assert!(rt.now() - begin < ms(500));
    });
}
