//! The example of a service, and the same on tokio: their common behaviour, and the end under load.

#[path = "../../../baskets.rs"]
#[allow(dead_code, reason = "`main` is for those that run it")]
mod example;
mod on_tokio;

use ganger::prelude::*;
use ganger::tokio::Tokio;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// Tests do not come to it by themselves.
const LONG: Duration = Duration::from_secs(3600);

fn scheduler() -> Scheduler {
    let builder = Scheduler::builder().workers(2);
    builder.driver(Tokio::new().unwrap()).start().unwrap()
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// An answer of HTTP/1.
struct Answer {
    status: u16,
    closes: bool,
    body: String,
}

/// A kept connection.
struct Client {
    stream: BufReader<TcpStream>,
    /// When the last request had been sent.
    sent: Instant,
    /// When the last answer had come.
    answered: Instant,
}

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream: BufReader::new(stream),
            sent: Instant::now(),
            answered: Instant::now(),
        }
    }

    fn ask(&mut self, path: &str, body: &str) -> std::io::Result<Answer> {
        let (method, length) = (if body.is_empty() { "GET" } else { "POST" }, body.len());
        let head = format!("{method} {path} HTTP/1.1\r\nhost: here\r\ncontent-length: {length}");
        let stream = self.stream.get_mut();
        let written = stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes());
        self.sent = Instant::now();
        written?;
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if line == "\r\n" {
                break;
            }
            head.push(line.to_lowercase());
        }
        let status = head[0].split(' ').nth(1).unwrap().parse().unwrap();
        let closes = head.iter().any(|it| it.starts_with("connection: close"));
        let length = head
            .iter()
            .find_map(|it| it.strip_prefix("content-length: "));
        let mut body = vec![0; length.unwrap().trim().parse().unwrap()];
        self.stream.read_exact(&mut body)?;
        let body = String::from_utf8(body).unwrap();
        self.answered = Instant::now();
        Ok(Answer {
            status,
            closes,
            body,
        })
    }
}

/// Asks a service with a limit that tests do not reach after the burst, and no eviction.
fn what_both_do(address: SocketAddr) {
    let mut client = Client::connect(address);
    let mut ask = |path: &str, body: &str| {
        let answer = client.ask(path, body).unwrap();
        (answer.status, answer.body)
    };
    assert_eq!(ask("/health", ""), (200, "0 baskets\n".into()));
    assert_eq!(ask("/baskets/ann", "apple"), (200, "apple\n".into()));
    assert_eq!(ask("/baskets/ann", "pear"), (200, "apple\npear\n".into()));
    assert_eq!(ask("/baskets/bob", ""), (200, String::new()));
    for _ in 2..20 {
        assert_eq!(ask("/baskets/ann", ""), (200, "apple\npear\n".into()));
    }
    assert_eq!(ask("/baskets/ann", ""), (429, "later\n".into()));
    assert_eq!(ask("/baskets/bob", ""), (200, String::new()));
    assert_eq!(ask("/health", ""), (200, "2 baskets\n".into()));
}

/// Asks a service with a short time, after which a basket is given up.
fn what_is_idle_goes(address: SocketAddr) {
    let mut client = Client::connect(address);
    client.ask("/baskets/ann", "apple").unwrap();
    let end = Instant::now() + PATIENCE;
    while client.ask("/health", "").unwrap().body != "0 baskets\n" {
        assert!(Instant::now() < end, "it is not given up");
    }
    assert_eq!(client.ask("/baskets/ann", "").unwrap().body, "");
}

// pins: I11
#[test]
fn users_have_baskets_and_a_limit() {
    for (settings, check) in [
        ((LONG, 1e-6), what_both_do as fn(SocketAddr)),
        ((Duration::from_millis(20), 1000.0), what_is_idle_goes),
    ] {
        let (scheduler, (listener, address)) = (scheduler(), listener());
        example::start(&scheduler, listener, settings).unwrap();
        check(address);
    }
}

/// Asks the same service on tokio the same, so the two can be compared.
// pins: I11
#[test]
fn the_same_service_on_tokio_does_the_same() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (settings, check) in [
        ((LONG, 1e-6), what_both_do as fn(SocketAddr)),
        ((Duration::from_millis(20), 1000.0), what_is_idle_goes),
    ] {
        let (listener, address) = listener();
        let server = runtime.block_on(async { on_tokio::start(listener, settings) });
        check(address);
        runtime.block_on(on_tokio::stop(server.unwrap())).unwrap();
    }
}

/// The longest pause of a client between two requests. The server closes a connection that is
/// silent for 100 ms.
const PROMPT: Duration = Duration::from_millis(50);

/// Asks until the server ends. Each prompt request has an answer.
fn load(mut client: Client, path: &str, answers: &AtomicU64) {
    loop {
        match client.ask(path, "") {
            Ok(answer) => {
                assert_eq!(answer.status, 200);
                // Ordering: Relaxed: a count.
                answers.fetch_add(1, Ordering::Relaxed);
                if answer.closes {
                    return;
                }
            }
            Err(error) => {
                let silence = client.sent - client.answered;
                assert!(silence > PROMPT, "{path}: no answer: {error}");
                return;
            }
        }
    }
}

// pins: I11, I4
#[test]
fn a_stop_under_load_leaves_no_request_without_an_answer() {
    let scheduler = scheduler();
    let (listener, address) = listener();
    example::start(&scheduler, listener, (LONG, 1e9)).unwrap();
    let answers = AtomicU64::new(0);
    thread::scope(|threads| {
        for number in 0..8 {
            let (mut client, path) = (Client::connect(address), format!("/baskets/{number}"));
            client.ask(&path, "").unwrap();
            let answers = &answers;
            threads.spawn(move || load(client, &path, answers));
        }
        // Ordering: Relaxed: a count.
        while answers.load(Ordering::Relaxed) < 1000 {
            thread::yield_now();
        }
        let report = scheduler.stop(PATIENCE).unwrap();
        assert_eq!((report.forced, report.stuck.len()), (0, 0), "{report:?}");
    });
    assert!(TcpStream::connect(address).is_err());
}
