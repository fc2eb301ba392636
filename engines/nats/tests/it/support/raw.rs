//! A client of the broker in a few lines, free to say anything.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

pub(crate) struct Raw {
    stream: BufReader<TcpStream>,
}

impl Raw {
    pub(crate) fn connect(port: u16) -> Self {
        let mut raw = Self::open(port);
        raw.write(b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\n");
        raw.flush();
        raw
    }

    pub(crate) fn user(port: u16, user: &str, password: &str) -> Self {
        let mut raw = Self::open(port);
        let who = format!("\"user\":\"{user}\",\"pass\":\"{password}\"");
        raw.write(format!("CONNECT {{{who},\"verbose\":false}}\r\n").as_bytes());
        raw.flush();
        raw
    }

    fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    pub(crate) fn publish(&mut self, subject: &str, payload: &[u8]) {
        let head = format!("PUB {subject} {}\r\n", payload.len());
        self.write(&[head.as_bytes(), payload, b"\r\n"].concat());
    }

    /// Publishes a frame with its checksum.
    pub(crate) fn frame(&mut self, subject: &str, frame: &[u8]) {
        let checksum = crc32fast::hash(frame).to_le_bytes();
        self.publish(subject, &[frame, &checksum].concat());
    }

    pub(crate) fn subscribe(&mut self, subject: &str) {
        self.write(format!("SUB {subject} 1\r\n").as_bytes());
    }

    /// Waits until the broker has seen all. Returns its lines so far.
    pub(crate) fn flush(&mut self) -> Vec<String> {
        self.write(b"PING\r\n");
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let length = self.stream.read_line(&mut line).unwrap();
            assert_ne!(length, 0, "the broker has ended: {lines:?}");
            if line == "PONG\r\n" {
                return lines;
            }
            lines.push(line);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }
}
