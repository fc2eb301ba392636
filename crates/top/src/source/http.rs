//! A blocking client of HTTP/1.1: each request has a connection of its own.
//!
//! **Problem.** The other side may be any program, and may be slow or hostile. So each answer has a
//! deadline, and a limit for its head and its body.
//!
//! **Protocol.** The client connects, sends the request with `connection: close`, reads the head,
//! and then the body: in chunks, by its length, or to the end.

use super::address::Address;
use crate::fault::Fault;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

/// The most bytes of a head, and of each line between chunks.
const HEAD: u64 = 64 << 10;

/// The most bytes of a reason for a refusal.
const SENTENCE: u64 = 4 << 10;

/// The time for a connection.
const CONNECT: Duration = Duration::from_secs(5);

pub(super) struct Client {
    pub(super) address: Address,
    pub(super) token: Option<String>,
}

/// How a body ends.
enum Length {
    Chunks,
    Bytes(u64),
    Close,
}

impl Client {
    /// Asks for a path in ASCII, and writes the body of the answer: `limit` bytes at most, within
    /// `time`.
    pub(super) fn get(
        &self,
        path: &str,
        limit: u64,
        time: Duration,
        to: &mut dyn Write,
    ) -> Result<(), Fault> {
        self.ask(&format!("GET {path} HTTP/1.1\r\n"), limit, time, to)
    }

    /// Posts a request for a change, as [`get`](Self::get) does for an answer. The request has no
    /// body.
    pub(super) fn post(
        &self,
        path: &str,
        limit: u64,
        time: Duration,
        to: &mut dyn Write,
    ) -> Result<(), Fault> {
        let line = format!("POST {path} HTTP/1.1\r\ncontent-length: 0\r\n");
        self.ask(&line, limit, time, to)
    }

    fn ask(&self, line: &str, limit: u64, time: Duration, to: &mut dyn Write) -> Result<(), Fault> {
        let end = Instant::now() + time;
        let stream = self.connect()?;
        let answered = self.exchange(&stream, line, limit, end, to);
        answered.map_err(|failed| match failed {
            Failed::Fault(fault) => fault,
            Failed::Io(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Fault::Slow(time),
                ErrorKind::UnexpectedEof => Fault::Broken("it ends early"),
                _ => self.unreachable(error),
            },
        })
    }

    fn unreachable(&self, error: io::Error) -> Fault {
        let address = self.address.to_string();
        Fault::Unreachable { address, error }
    }

    /// Connects to the first IP address of the host that takes it.
    fn connect(&self) -> Result<TcpStream, Fault> {
        let host = (self.address.host(), self.address.port());
        let addresses = host.to_socket_addrs().map_err(|it| self.unreachable(it))?;
        let mut last = io::Error::new(ErrorKind::NotFound, "the host has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(self.unreachable(last))
    }

    fn exchange(
        &self,
        stream: &TcpStream,
        line: &str,
        limit: u64,
        end: Instant,
        to: &mut dyn Write,
    ) -> Result<(), Failed> {
        let mut request = format!(
            "{line}host: {}\r\nconnection: close\r\naccept: */*\r\n",
            self.address
        );
        if let Some(token) = &self.token {
            request += &format!("authorization: Bearer {token}\r\n");
        }
        request += "\r\n";
        stream.set_write_timeout(Some(CONNECT))?;
        // A server that refuses early may close before it has read all: its answer says why.
        let sent = (&*stream).write_all(request.as_bytes());
        let mut answer = BufReader::new(Until { stream, end });
        let (status, length) = match head(&mut answer) {
            Ok(head) => head,
            Err(Failed::Io(error)) => return Err(Failed::Io(sent.err().unwrap_or(error))),
            Err(fault) => return Err(fault),
        };
        if status == 200 {
            return body(&mut answer, &length, limit, to);
        }
        let mut sentence = Vec::new();
        // A short reason is better than none.
        let _ = body(&mut answer, &length, SENTENCE, &mut sentence);
        let sentence = String::from_utf8_lossy(&sentence).trim().to_owned();
        Err(Failed::Fault(match status {
            401 if self.token.is_some() => Fault::WrongToken,
            401 => Fault::Token,
            404 => Fault::NotHere(sentence),
            _ => Fault::Refused { status, sentence },
        }))
    }
}

/// Reads the head: the status, and how the body ends.
fn head(from: &mut impl BufRead) -> Result<(u16, Length), Failed> {
    let mut left = HEAD;
    let first = line(from, &mut left)?;
    let mut parts = first.split(' ');
    let is_http = parts.next().is_some_and(|it| it.starts_with("HTTP/1."));
    let status = parts.next().and_then(|it| it.parse().ok());
    let Some(status) = status.filter(|_| is_http) else {
        return Err(Fault::Broken("its first line is none of HTTP/1.1").into());
    };
    let mut length = Length::Close;
    loop {
        let line = line(from, &mut left)?;
        if line.is_empty() {
            return Ok((status, length));
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(Fault::Broken("a line of its head is not a header").into());
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case("chunked") {
                return Err(Fault::Broken("its transfer encoding is unknown").into());
            }
            length = Length::Chunks;
        } else if name.eq_ignore_ascii_case("content-length") && !matches!(length, Length::Chunks) {
            let wrong = Fault::Broken("its content length is not a number");
            length = Length::Bytes(value.parse().map_err(|_| wrong)?);
        }
    }
}

/// Reads a line without its end, and takes its bytes from `left`.
fn line(from: &mut impl BufRead, left: &mut u64) -> Result<String, Failed> {
    let mut line = Vec::new();
    let count = from.take(*left).read_until(b'\n', &mut line)?;
    *left -= count as u64;
    if line.pop() != Some(b'\n') {
        return Err(match *left {
            0 => Fault::Broken("its head has more than 64 KiB").into(),
            _ => Failed::Io(ErrorKind::UnexpectedEof.into()),
        });
    }
    line.pop_if(|last| *last == b'\r');
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Copies the body. The head's limit holds for each line between chunks.
fn body(
    from: &mut impl BufRead,
    length: &Length,
    limit: u64,
    to: &mut dyn Write,
) -> Result<(), Failed> {
    match *length {
        Length::Bytes(count) if count > limit => Err(Fault::Large(limit).into()),
        Length::Bytes(count) => copy(from, count, to),
        Length::Close => {
            let count = pump(&mut from.take(limit + 1), to)?;
            if count > limit {
                return Err(Fault::Large(limit).into());
            }
            Ok(())
        }
        Length::Chunks => {
            let mut rest = limit;
            loop {
                let line = line(from, &mut HEAD.clone())?;
                let size = line.split(';').next().unwrap_or_default().trim();
                let wrong = Fault::Broken("the length of a chunk is not a number");
                let size = u64::from_str_radix(size, 16).map_err(|_| wrong)?;
                if size == 0 {
                    return Ok(());
                }
                rest = rest.checked_sub(size).ok_or(Fault::Large(limit))?;
                copy(from, size, to)?;
                if !self::line(from, &mut HEAD.clone())?.is_empty() {
                    return Err(Fault::Broken("a chunk is longer than it says").into());
                }
            }
        }
    }
}

/// Copies exactly `count` bytes.
fn copy(from: &mut impl BufRead, count: u64, to: &mut dyn Write) -> Result<(), Failed> {
    let copied = pump(&mut from.take(count), to)?;
    if copied < count {
        return Err(Failed::Io(ErrorKind::UnexpectedEof.into()));
    }
    Ok(())
}

/// Copies to the end. An error of the reader is the network's, and an error of the writer the
/// file's.
fn pump(from: &mut impl BufRead, to: &mut dyn Write) -> Result<u64, Failed> {
    let mut copied = 0;
    loop {
        let bytes = from.fill_buf()?;
        if bytes.is_empty() {
            return Ok(copied);
        }
        to.write_all(bytes).map_err(Fault::File)?;
        let count = bytes.len();
        copied += count as u64;
        from.consume(count);
    }
}

/// Reads until a moment.
struct Until<'a> {
    stream: &'a TcpStream,
    end: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

enum Failed {
    Io(io::Error),
    Fault(Fault),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
