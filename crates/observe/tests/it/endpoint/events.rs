//! Streams of events.

use super::support::{connect, get, until};
use ganger_observe::api::{self, Snapshot};
use ganger_observe::{Endpoint, serve};
use ganger_sched::Scheduler;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

fn open(endpoint: &Endpoint, query: &str) -> BufReader<TcpStream> {
    let mut stream = connect(endpoint.address());
    let request = format!("GET /api/v1/events{query} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    BufReader::new(stream)
}

/// Reads the next snapshot of a stream, whose chunks and other lines are left out.
fn next(stream: &mut BufReader<TcpStream>) -> Snapshot {
    loop {
        let mut line = String::new();
        assert!(
            stream.read_line(&mut line).unwrap() > 0,
            "the stream has ended"
        );
        if let Some(json) = line.strip_prefix("data: ") {
            return api::from_json(json.as_bytes()).unwrap();
        }
    }
}

// pins: V10
#[test]
fn a_stream_has_a_new_snapshot_each_period() {
    let scheduler = Scheduler::builder().workers(1).start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let mut streams = [
        open(&endpoint, "?every=250ms"),
        open(&endpoint, "?every=300ms"),
    ];
    for stream in &mut streams {
        let seen = [next(stream), next(stream), next(stream)];
        let sequences = seen.iter().map(|it| it.sequence);
        assert!(sequences.is_sorted_by(|a, b| a < b), "{seen:?}");
        assert_eq!(seen[0].schedulers.len(), 1);
    }
    drop(endpoint);
    // The end of the endpoint ends the streams.
    for mut stream in streams {
        let _rest = stream.read_to_end(&mut Vec::new());
    }
}

// pins: V3
#[test]
fn no_more_streams_are_open_than_the_limit() {
    let endpoint = serve("127.0.0.1:0").start().unwrap();
    let mut streams: Vec<_> = (0..32).map(|_| open(&endpoint, "?every=60s")).collect();
    for stream in &mut streams {
        next(stream);
    }
    get(&endpoint, "/api/v1/events").refuses(503, "ask for /api/v1/snapshot");
    assert_eq!(get(&endpoint, "/api/v1/snapshot").status, 200);
    drop(streams);
    until("a place is free", || {
        let mut stream = open(&endpoint, "");
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        line.contains(" 200 ")
    });
}

// pins: V1
#[test]
fn a_wrong_period_gets_a_sentence() {
    let endpoint = serve("127.0.0.1:0").start().unwrap();
    for (query, part) in [
        ("every=249ms", "write 500ms or 5s"),
        ("every=61s", "write 500ms or 5s"),
        ("every=", "write 500ms or 5s"),
        ("every=1s&every=1s", "a single parameter, every"),
        ("x=1", "a single parameter, every"),
    ] {
        get(&endpoint, &format!("/api/v1/events?{query}")).refuses(400, part);
    }
}
