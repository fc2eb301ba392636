//! Streams of events that no client reads, and a flood of requests for more, measured with a
//! counting allocator: so this program has a single test.
#![allow(missing_docs)]

#[path = "it/endpoint/support.rs"]
#[allow(dead_code, reason = "another program needs the rest")]
mod support;

use ganger_observe::api::Snapshot;
use ganger_observe::{Endpoint, serve};
use ganger_sched::Scheduler;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use support::{connect, get, read};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system allocator does the work; the counter changes nothing in its results.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Ordering: Relaxed, because the counter is only a sum.
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // Ordering: Relaxed, because the counter is only a sum.
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The streams of an endpoint at a time.
const STREAMS: usize = 32;

/// The clients of the flood, and the requests of each in a wave.
const CLIENTS: usize = 10;
const REQUESTS: usize = 100;
const WAVES: usize = 10;

/// The largest difference of the memory: the buffers of the connections come and go.
const FLAT: usize = 1 << 20;

/// Opens a stream, and reads no more than its status.
fn open(endpoint: &Endpoint) -> TcpStream {
    let mut stream = connect(endpoint.address());
    let request = "GET /api/v1/events?every=60s HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    stream
}

/// Asks for streams in turn on the same connection. Returns the number of refusals.
fn ask_for_more(endpoint: &Endpoint) -> usize {
    let request = "GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n";
    let requests = format!("{request}\r\n").repeat(REQUESTS - 1);
    let client = connect(endpoint.address());
    let all = requests + request + "connection: close\r\n\r\n";
    (&client).write_all(all.as_bytes()).unwrap();
    let answers = read(&client);
    let all = answers.head + &answers.body;
    assert!(!all.contains("text/event-stream"));
    all.matches("32 streams of events are open").count()
}

/// Starts ten clients that ask for a hundred streams each, while another client asks for a
/// snapshot; returns the number of refused streams.
fn wave(endpoint: &Endpoint) -> usize {
    thread::scope(|scope| {
        let flood: Vec<_> = (0..CLIENTS)
            .map(|_| scope.spawn(|| ask_for_more(endpoint)))
            .collect();
        let snapshot: Snapshot = get(endpoint, "/api/v1/snapshot").json();
        assert_eq!(snapshot.schedulers.len(), 1);
        flood.into_iter().map(|it| it.join().unwrap()).sum()
    })
}

fn live() -> usize {
    // Ordering: Relaxed, because the counter is only a sum.
    LIVE.load(Ordering::Relaxed)
}

// pins: V3
#[test]
fn ten_thousand_streams_over_the_limit_are_refused_and_take_no_memory() {
    let scheduler = Scheduler::builder().workers(1).start().unwrap();
    let endpoint = serve("127.0.0.1:0").scheduler(&scheduler).start().unwrap();
    let streams: Vec<_> = (0..STREAMS).map(|_| open(&endpoint)).collect();
    let mut refused = wave(&endpoint);
    let first = live();
    for _ in 1..WAVES {
        refused += wave(&endpoint);
        let now = live();
        assert!(now < first + FLAT, "{first} bytes, and then {now}");
    }
    assert_eq!(refused, CLIENTS * REQUESTS * WAVES);
    drop(streams);
    // The places are free again.
    support::until("a stream is open", || {
        let mut stream = connect(endpoint.address());
        let request = "GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        &status == b"HTTP/1.1 200"
    });
}
