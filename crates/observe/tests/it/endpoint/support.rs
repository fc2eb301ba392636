//! A client of bytes: sends, and reads to the end.

use ganger_observe::{Endpoint, api};
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// A test waits so long for an event, and fails then.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> T {
        assert_eq!(self.status, 200, "{}", self.body);
        assert_eq!(self.header("content-type"), Some("application/json"));
        api::from_json(self.body.as_bytes()).unwrap()
    }

    /// Asserts that the answer has this status, and its sentence this part.
    #[track_caller]
    pub(crate) fn refuses(&self, status: u16, part: &str) {
        assert_eq!(self.status, status, "{}{}", self.head, self.body);
        assert!(self.body.contains(part), "{:?} has no {part:?}", self.body);
        assert!(self.body.ends_with('\n'));
        let kind = self.header("content-type");
        assert_eq!(kind, Some("text/plain; charset=utf-8"));
        assert_eq!(self.header("x-content-type-options"), Some("nosniff"));
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Reads to the end. The status is 0 without an answer.
pub(crate) fn read(mut stream: &TcpStream) -> Answer {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    Answer {
        status: status.unwrap_or_default(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// Sends bytes, and reads to the end.
pub(crate) fn send(endpoint: &Endpoint, bytes: &[u8]) -> Answer {
    let mut stream = connect(endpoint.address());
    // Fails when the answer comes before the end of the bytes.
    let _ = stream.write_all(bytes);
    read(&stream)
}

/// Asks for a path, with more headers.
pub(crate) fn ask(endpoint: &Endpoint, method: &str, path: &str, headers: &[&str]) -> Answer {
    let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|it| it.starts_with("host:")) {
        request += &format!("host: {}\r\n", endpoint.address());
    }
    for header in headers {
        request += &format!("{header}\r\n");
    }
    send(endpoint, (request + "\r\n").as_bytes())
}

pub(crate) fn get(endpoint: &Endpoint, path: &str) -> Answer {
    ask(endpoint, "GET", path, &[])
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not in time");
        std::thread::yield_now();
    }
}
