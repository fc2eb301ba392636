//! The load on an echo server: a single thread with many connections. Each sends 64 bytes, waits
//! until they have come back, and sends again.

use crate::idle;
use crate::server::Failure;
use hdrhistogram::Histogram;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

const BYTES: usize = 64;

/// Requests a second, and the microseconds in which a share of them is answered; `NAN` for unknown
/// figures. All requests, even if they do not count.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) rate: f64,
    pub(crate) requests: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
}

/// Runs in a process of its own.
pub(crate) fn run_apart(port: u16, connections: usize, time: Duration) -> Result<Figures, Failure> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--load", &port.to_string()])
        .args(["--connections", &connections.to_string()])
        .args(["--millis", &time.as_millis().to_string()])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let figures = serde_json::from_str(text.trim());
    figures.map_err(|_| {
        let error = String::from_utf8_lossy(&output.stderr);
        format!("the load generator says: {text}{error}").into()
    })
}

struct Connection {
    stream: TcpStream,
    /// When it has sent.
    sent: Instant,
    /// The number of bytes back since then.
    back: usize,
}

/// Returns the figures of requests over `connections` connections for `time`. The requests of a
/// quarter of the time come first; their latencies do not count.
pub(crate) fn run(port: u16, connections: usize, time: Duration) -> Result<Figures, Failure> {
    idle::raise_limit();
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut all = Vec::with_capacity(connections);
    for index in 0..connections {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &stream, EventData::new_u64(index as u64), flags)?;
        let (sent, back) = (Instant::now(), 0);
        all.push(Connection { stream, sent, back });
    }
    let mut requests = 0_u32;
    let mut latencies = Histogram::<u64>::new(3)?;
    let begin = Instant::now() + time / 4;
    for connection in &mut all {
        connection.send()?;
    }
    let mut events: Vec<Event> = Vec::with_capacity(256);
    let patience = Timespec {
        tv_sec: 10,
        tv_nsec: 0,
    };
    loop {
        events.clear();
        let spare = rustix::buffer::spare_capacity(&mut events);
        if epoll::wait(&epoll, spare, Some(&patience))? == 0 {
            return Err("nothing comes back for ten seconds".into());
        }
        for event in &events {
            let connection = &mut all[usize::try_from(event.data.u64())?];
            if let Some(now) = connection.receive()? {
                if connection.sent >= begin {
                    let nanos = (now - connection.sent).as_nanos();
                    latencies.record(u64::try_from(nanos)?)?;
                }
                requests += 1;
                connection.send()?;
            }
        }
        if begin.elapsed() >= time {
            break;
        }
    }
    let micros = |quantile| latencies.value_at_quantile(quantile) as f64 / 1_000.0;
    Ok(Figures {
        rate: latencies.len() as f64 / begin.elapsed().as_secs_f64(),
        requests: requests.into(),
        p50: micros(0.5),
        p99: micros(0.99),
        p999: micros(0.999),
    })
}

impl Connection {
    fn send(&mut self) -> Result<(), Failure> {
        (self.sent, self.back) = (Instant::now(), 0);
        self.stream.write_all(&[b'x'; BYTES])?;
        Ok(())
    }

    /// Says when all has come back.
    fn receive(&mut self) -> Result<Option<Instant>, Failure> {
        let mut buffer = [0; 2 * BYTES];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err("the server has closed a connection".into()),
            Ok(length) => {
                self.back += length;
                Ok((self.back == BYTES).then(Instant::now))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
