//! A server in this program, and clients that block.

use super::example::listener;
use super::example::server::Settings;
use ganger::net::Net;
use ganger::prelude::*;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not in time");
        std::thread::yield_now();
    }
}

pub(crate) struct Running {
    scheduler: Scheduler,
    pub(crate) address: SocketAddr,
}

pub(crate) fn start(settings: Settings) -> Running {
    let builder = Scheduler::builder().workers(2).driver(Net::new().unwrap());
    let scheduler = builder
        .mailbox_limit(settings.mailbox_limit())
        .build()
        .unwrap();
    scheduler.start().unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let (_, address) = listener::start(&scheduler, any, settings).unwrap();
    Running { scheduler, address }
}

pub(crate) fn started() -> Running {
    start(Settings::default())
}

impl Running {
    pub(crate) fn client(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client(BufReader::new(stream))
    }

    pub(crate) fn stop(self) {
        let report = self.scheduler.stop(PATIENCE).unwrap();
        assert_eq!((report.forced, report.stuck.len()), (0, 0), "{report:?}");
    }
}

pub(crate) struct Client(pub(crate) BufReader<TcpStream>);

impl Client {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Reads the next answer, in short.
    pub(crate) fn answer(&mut self) -> String {
        let line = self.line();
        let (kind, rest) = line.split_at_checked(1).expect("an answer");
        match kind {
            "$" if rest == "-1" => "nil".into(),
            "$" => {
                let mut text = vec![0; rest.parse::<usize>().unwrap() + 2];
                self.0.read_exact(&mut text).unwrap();
                String::from_utf8_lossy(&text[..text.len() - 2]).into()
            }
            "*" if rest == "-1" => "nil".into(),
            "_" => "none".into(),
            "%" => {
                let parts: Vec<_> = (0..2 * rest.parse::<usize>().unwrap())
                    .map(|_| self.answer())
                    .collect();
                format!("{{{}}}", parts.join(" "))
            }
            "*" | ">" => {
                let parts: Vec<_> = (0..rest.parse().unwrap())
                    .map(|_: i32| self.answer())
                    .collect();
                format!("({})", parts.join(" "))
            }
            _ => rest.into(),
        }
    }

    pub(crate) fn ask(&mut self, request: &str) -> String {
        self.send(format!("{request}\r\n").as_bytes());
        self.answer()
    }

    pub(crate) fn is_closed(&mut self) -> bool {
        match self.0.read(&mut [0]) {
            Ok(count) => count == 0,
            // Input that the server has not read is lost.
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}
