//! Clients cannot make the example `kv` use more memory than its limits allow. A program of its
//! own, because it counts the allocations of the whole program.
#![cfg(target_os = "linux")]

#[path = "it/kv/clients.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod clients;
#[path = "../kv/main.rs"]
#[allow(dead_code, reason = "the example's own `main`")]
mod example;

use clients::{Client, Running, start, until};
use example::connection::{MANY_BYTES, READ, TOGETHER};
use example::server::Settings;
use ganger::mpsc::node_cache;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Counting;

/// The bytes in use, and their peak.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does everything; the counts change nothing about it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Ordering: Relaxed: counts; each test compares its own reads.
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: by the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // Ordering: Relaxed: a count.
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: by the contract of this function.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Waits until no other test runs: the tests share the counts.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let alone = ONE_AT_A_TIME.lock();
    // Otherwise the program keeps megabytes of taken messages for later messages.
    node_cache::set_limit(0);
    alone.unwrap_or_else(PoisonError::into_inner)
}

/// A part of a test in which memory is counted.
struct Counted {
    before: usize,
}

impl Counted {
    fn begin() -> Self {
        // Ordering: Relaxed: counts.
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        Self { before }
    }

    /// Returns how much more has been in use at a time.
    fn most(&self) -> usize {
        // Ordering: Relaxed: a count.
        PEAK.load(Ordering::Relaxed).saturating_sub(self.before)
    }

    /// Waits until all other clients have gone, and their memory is free.
    fn until_given_back(&self, client: &mut Client) {
        until("the others are gone", || {
            client.ask("info").contains("connected_clients:1\r\n")
        });
        until("their memory is given back", || {
            // Ordering: Relaxed: a count.
            LIVE.load(Ordering::Relaxed) <= self.before + SHARED
        });
    }
}

/// The memory shared by all clients: buffers of workers, and memory that ended processes leave to
/// the next processes.
const SHARED: usize = 512 * 1024;

/// The memory of an idle connection.
const CONNECTION: usize = 8 * 1024;

/// The memory of an argument on its way to a shard and back, without its bytes.
const ARGUMENT: usize = 256;

/// Returns the memory of a client that does not read. Counts its connection; the input of a read,
/// in a buffer that doubles, and its arguments; and the encoded output, in a buffer that doubles,
/// at most `MANY_BYTES` and a part of an answer.
fn of_a_client(arguments: usize, part: usize) -> usize {
    CONNECTION + 2 * READ + arguments * ARGUMENT + 2 * (MANY_BYTES + part)
}

/// So often nothing must have changed before it is taken to stay so.
const QUIET: usize = 50;

/// Sockets take a part of this, and a server that reads on takes all.
const WITHOUT_END: usize = 64 << 20;

fn settings() -> Settings {
    Settings {
        shards: 4,
        // The clients that do not read stay until the test ends.
        patience: clients::PATIENCE,
        ..Settings::default()
    }
}

fn commands(client: &mut Client) -> usize {
    let info = client.ask("info");
    let (_, rest) = info.split_once("total_commands_processed:").unwrap();
    rest.split_once('\r').unwrap().0.parse().unwrap()
}

/// A client that sends the same again and again, and never reads.
struct Flooding<'a> {
    stream: TcpStream,
    requests: &'a [u8],
    sent: usize,
}

impl Flooding<'_> {
    /// Sends until the socket would block, or all requests have been sent once more. Says how much
    /// was sent.
    fn send(&mut self) -> usize {
        let before = self.sent;
        while self.sent < before + self.requests.len() {
            let from = self.sent % self.requests.len();
            match self.stream.write(&self.requests[from..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.sent - before
    }
}

/// Floods a server by clients that do not read, and checks that it takes at most `each` for each of
/// them. A byte of their requests asks for at least `answered` bytes.
fn flood(server: &Running, control: &mut Client, requests: &str, answered: usize, each: usize) {
    const CLIENTS: usize = 8;
    let counted = Counted::begin();
    let mut flooding: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let stream = TcpStream::connect(server.address).unwrap();
            stream.set_nonblocking(true).unwrap();
            let requests = requests.as_bytes();
            let sent = 0;
            Flooding {
                stream,
                requests,
                sent,
            }
        })
        .collect();
    let (mut quiet, mut before) = (0, 0);
    while quiet < QUIET && flooding.iter().all(|it| it.sent < WITHOUT_END) {
        let sent: usize = flooding.iter_mut().map(Flooding::send).sum();
        let carried_out = commands(control);
        // The question itself counts, too.
        let is_quiet = sent == 0 && carried_out == before + 1;
        quiet = if is_quiet { quiet + 1 } else { 0 };
        before = carried_out;
    }
    let (most, allowed) = (counted.most(), SHARED + CLIENTS * each);
    assert!(most <= allowed, "{most} bytes, not {allowed}");
    for client in &flooding {
        assert!(client.sent < WITHOUT_END, "it is read without end");
        let answers = client.sent * answered;
        assert!(answers > 10 * allowed, "{answers} bytes show nothing");
    }
    drop(flooding);
    counted.until_given_back(control);
}

const LONG: usize = 20_000;

/// Starts a server with a long value by this key.
fn with_long_value(key: &str) -> (Running, Client) {
    let server = start(settings());
    let mut control = server.client();
    let text = "x".repeat(LONG / 2);
    for _ in 0..2 {
        control.ask(&format!("append {key} {text}"));
    }
    assert_eq!(control.ask(&format!("strlen {key}")), LONG.to_string());
    (server, control)
}

#[test]
fn clients_that_read_no_answers_take_what_is_carried_out_together() {
    let _alone = alone();
    const KEY: &str = "the-key-of-a-long-text";
    let (server, mut control) = with_long_value(KEY);
    // Each argument has an answer, and a request has many.
    let many = format!("mget{}\r\n", format!(" {KEY}").repeat(100)).repeat(20);
    let each = of_a_client(READ / KEY.len(), LONG);
    flood(&server, &mut control, &many, LONG / 30, each);

    let one = format!("get {KEY}\r\n").repeat(1_000);
    let each = of_a_client(2 * TOGETHER, LONG);
    flood(&server, &mut control, &one, LONG / 30, each);
    drop(control);
    server.stop();
}

/// Floods with requests whose answers are each of another text, which is in memory until it is
/// written.
#[test]
fn clients_that_read_no_answers_of_changed_texts_take_one_of_them() {
    let _alone = alone();
    let (server, mut control) = with_long_value("key");
    // The appended text is empty, and yet the append makes a copy.
    let changing = "*3\r\n$6\r\nappend\r\n$3\r\nkey\r\n$0\r\n\r\nget key\r\n".repeat(1_000);
    let each = of_a_client(4 * TOGETHER, LONG) + LONG;
    flood(&server, &mut control, &changing, LONG / 100, each);
    drop(control);
    server.stop();
}

/// Sends a value to a burst of slow readers: the value is in memory once.
#[test]
fn clients_that_do_not_read_a_long_text_share_it() {
    let _alone = alone();
    const CLIENTS: usize = 20;
    const BYTES: usize = 6 << 20;
    let server = start(settings());
    let mut control = server.client();
    let mut set = format!("*3\r\n$3\r\nset\r\n$1\r\nk\r\n${BYTES}\r\n").into_bytes();
    set.resize(set.len() + BYTES, b'x');
    set.extend_from_slice(b"\r\n");
    control.send(&set);
    assert_eq!(control.answer(), "OK");
    drop(set);

    let counted = Counted::begin();
    let mut slow: Vec<_> = (0..CLIENTS).map(|_| server.client()).collect();
    for client in &mut slow {
        client.send(b"get k\r\n");
        // The rest does not fit into the sockets.
        assert_eq!(client.line(), format!("${BYTES}"));
    }
    let each = of_a_client(1, 0) + slow[0].0.capacity();
    let (most, allowed) = (counted.most(), SHARED + CLIENTS * each);
    assert!(most <= allowed, "{most} bytes, not {allowed}");
    drop(slow);
    counted.until_given_back(&mut control);
    drop(control);
    server.stop();
}

#[test]
fn slow_clients_take_what_they_have_sent_and_not_what_they_announce() {
    let _alone = alone();
    const CLIENTS: usize = 100;
    const BYTES: usize = 50;
    let settings = settings();
    let limits = settings.limits;
    let server = start(settings);
    let mut control = server.client();
    assert_eq!(control.ask("ping"), "PONG");
    let begin = format!("ping\r\n*{}\r\n${}\r\n", limits.arguments, limits.argument);

    let counted = Counted::begin();
    let mut slow: Vec<_> = (0..CLIENTS).map(|_| server.client()).collect();
    for client in &mut slow {
        client.send(begin.as_bytes());
    }
    // The begun request came together with the answered request.
    assert!(slow.iter_mut().all(|it| it.answer() == "PONG"));
    for _ in 0..BYTES {
        slow.iter_mut().for_each(|it| it.send(b"x"));
    }
    // The server closes when it has read all.
    for client in &mut slow {
        client.0.get_ref().shutdown(Shutdown::Write).unwrap();
    }
    assert!(slow.iter_mut().all(Client::is_closed));
    // The client's buffer is counted, too.
    let each = CONNECTION + slow[0].0.capacity();
    let (most, allowed) = (counted.most(), SHARED + CLIENTS * each);
    assert!(most <= allowed, "{most} bytes, not {allowed}");
    assert!(CLIENTS * limits.argument > 100 * allowed);
    drop(slow);
    counted.until_given_back(&mut control);
    drop(control);
    server.stop();
}

/// Publishes until the server refuses, and checks that it takes at most the limit of bytes under
/// way, and the output of each subscriber.
fn publish(text: &str) {
    const SUBSCRIBERS: usize = 8;
    const TOGETHER: usize = 100;
    let settings = Settings {
        under_way: 1 << 20,
        ..settings()
    };
    let under_way = settings.under_way;
    let server = start(settings);
    let mut publisher = server.client();
    let publication = format!("publish news {text}\r\n").repeat(TOGETHER);

    let counted = Counted::begin();
    let mut subscribers: Vec<_> = (0..SUBSCRIBERS).map(|_| server.client()).collect();
    for client in &mut subscribers {
        assert_eq!(client.ask("subscribe news"), "(subscribe news 1)");
    }
    let all = SUBSCRIBERS.to_string();
    let (mut quiet, mut are_all_there) = (0, true);
    while quiet < QUIET && are_all_there {
        publisher.send(publication.as_bytes());
        let answers: Vec<_> = (0..TOGETHER).map(|_| publisher.answer()).collect();
        let is_refused = |it: &&String| it.starts_with("ERR subscribers have not taken");
        let refused = answers.iter().filter(is_refused).count();
        let taken = answers.iter().filter(|it| **it == all).count();
        // A subscriber whose mailbox is full is not there any more.
        are_all_there = refused + taken == TOGETHER;
        quiet = if refused == TOGETHER { quiet + 1 } else { 0 };
    }
    let buffer = subscribers[0].0.capacity();
    let each = of_a_client(TOGETHER, text.len()) + buffer;
    let (most, allowed) = (counted.most(), SHARED + under_way + SUBSCRIBERS * each);
    assert!(most <= allowed, "{most} bytes, not {allowed}");
    assert!(
        are_all_there,
        "what is under way to all is not what ends it"
    );
    drop(subscribers);
    counted.until_given_back(&mut publisher);
    drop(publisher);
    server.stop();
}

#[test]
fn subscribers_that_do_not_read_take_what_may_be_under_way() {
    let _alone = alone();
    publish(&"x".repeat(10_000));
}

/// Publishes a short text, which takes more in the mailboxes of all than by itself.
#[test]
fn subscribers_that_do_not_read_short_texts_take_what_may_be_under_way() {
    let _alone = alone();
    publish("x");
}
