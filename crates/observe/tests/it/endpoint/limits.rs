//! Requests and connections over the limits, by the clock of the system. `endpoint/tests.rs` has
//! the deadlines, in virtual time.

use super::support::{Answer, ask, connect, get, read, send, until};
use ganger_observe::{Endpoint, serve};
use std::io::Write;
use std::net::TcpStream;

fn start() -> Endpoint {
    serve("127.0.0.1:0")
        .token("0123456789abcdef")
        .start()
        .unwrap()
}

/// Opens more connections than the limit. A slow machine may end the open connections before the
/// next is made: then the test tries again.
// pins: V3
#[test]
fn connections_over_the_limit_are_told_so_and_later_ones_are_served() {
    let endpoint = start();
    until("a connection is refused", || {
        let open: Vec<TcpStream> = (0..64).map(|_| connect(endpoint.address())).collect();
        let answer = get(&endpoint, "/healthz");
        drop(open);
        if answer.status == 503 {
            answer.refuses(503, "64 connections are open");
        }
        answer.status == 503
    });
    until("a place is free", || {
        get(&endpoint, "/healthz").status == 200
    });
}

/// Floods the endpoint with connections that say nothing: the endpoint ends them, and lives on.
// pins: V3
#[test]
fn a_flood_of_connections_passes() {
    let endpoint = start();
    let flood: Vec<_> = (0..400).map(|_| connect(endpoint.address())).collect();
    let answers: Vec<_> = flood.iter().map(read).collect();
    assert!(answers.iter().all(|it| [0, 503].contains(&it.status)));
    until("the flood is over", || {
        get(&endpoint, "/healthz").status == 200
    });
}

// pins: V3
#[test]
fn a_flood_of_requests_is_answered_in_order() {
    let endpoint = serve("127.0.0.1:0").start().unwrap();
    let clients: Vec<_> = (0..8).map(|_| connect(endpoint.address())).collect();
    let one = "GET /api/v1/processes?top=1 HTTP/1.1\r\nhost: localhost\r\n";
    let request = format!("{one}\r\n").repeat(199) + one + "connection: close\r\n\r\n";
    std::thread::scope(|scope| {
        for mut client in &clients {
            let request = &request;
            scope.spawn(move || {
                client.write_all(request.as_bytes()).unwrap();
                let answers = read(client);
                let more = answers.body.matches("HTTP/1.1 200 OK").count();
                assert_eq!((answers.status, more), (200, 199));
            });
        }
    });
    assert_eq!(get(&endpoint, "/healthz").status, 200);
}

// pins: V3
#[test]
fn a_head_over_the_limit_is_refused() {
    let endpoint = start();
    let header = |length| format!("x: {}", "a".repeat(length));
    assert_eq!(
        ask(&endpoint, "GET", "/healthz", &[&header(7 << 10)]).status,
        200
    );
    let refused = ask(&endpoint, "GET", "/healthz", &[&header(8 << 10)]);
    refused.refuses(431, "8 KiB");
    assert_eq!(refused.header("connection"), Some("close"));
    let path = format!("/{}", "a".repeat(8 << 10));
    get(&endpoint, &path).refuses(431, "a shorter path");
    let many: Vec<_> = (0..90)
        .map(|it| format!("x{it}: {}", "a".repeat(100)))
        .collect();
    let many: Vec<_> = many.iter().map(|it| &**it).collect();
    ask(&endpoint, "GET", "/healthz", &many).refuses(431, "fewer");
    // A far longer head gets the bare status.
    let longest = send(
        &endpoint,
        &b"GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".repeat(10_000),
    );
    assert!(
        [400, 414, 431].contains(&longest.status),
        "{}",
        longest.status
    );
    let longest = ask(&endpoint, "GET", "/healthz", &[&header(1 << 20)]);
    assert_eq!(longest.status, 431);
}

fn post(endpoint: &Endpoint, path: &str, headers: &str, body: &[u8]) -> Answer {
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n\r\n");
    send(endpoint, &[head.as_bytes(), body].concat())
}

// pins: V3
#[test]
fn a_body_over_the_limit_is_refused_whatever_its_form() {
    let endpoint = start();
    let body = vec![b'a'; 1 << 17];
    let length = format!("content-length: {}", body.len());
    for path in ["/login", "/healthz", "/x"] {
        let answer = post(&endpoint, path, &length, &body);
        answer.refuses(413, "64 KiB");
        assert_eq!(answer.header("connection"), Some("close"));
    }
    // A length without its body.
    let answer = post(&endpoint, "/login", "content-length: 9999999999", b"a");
    answer.refuses(413, "64 KiB");
    let chunk = [&b"10000\r\n"[..], &body[..1 << 16], b"\r\n"].concat();
    let chunks = [&*chunk, &*chunk, b"0\r\n\r\n"].concat();
    let chunked = "transfer-encoding: chunked\r\nconnection: close";
    post(&endpoint, "/login", chunked, &chunks).refuses(413, "64 KiB");
    let fits = format!("content-length: {}\r\nconnection: close", 1 << 16);
    let fits = post(&endpoint, "/login", &fits, &body[..1 << 16]);
    assert_eq!(fits.status, 403);
}

/// Sends other protocols, and requests without an end, which end their connections alone.
// pins: V3
#[test]
fn bytes_that_are_no_request_are_refused() {
    let endpoint = start();
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"HELO localhost\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\0 HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n",
    ] {
        let stream = connect(endpoint.address());
        (&stream).write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let status = read(&stream).status;
        assert!([0, 400, 505].contains(&status), "{status} {bytes:?}");
    }
    assert_eq!(get(&endpoint, "/healthz").status, 200);
}

// pins: V3
#[test]
fn a_head_that_does_not_end_is_given_up() {
    let endpoint = start();
    let mut stream = connect(endpoint.address());
    stream.write_all(b"GET /healthz HTTP/1.1\r\nho").unwrap();
    read(&stream).refuses(408, "within 5 s");
    // A connection without a request ends without an answer.
    assert_eq!(read(&connect(endpoint.address())).status, 0);
}
