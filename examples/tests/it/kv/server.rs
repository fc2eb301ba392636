//! The server, with clients on threads.

use super::clients::{start, started, until};
use super::example::connection::{self, TOGETHER};
use super::example::protocol::Answer;
use super::example::server::{Server, Settings};
use super::example::shard::{Keys, Shard, Work};
use futures_util::io::{AsyncRead, AsyncWrite};
use ganger::prelude::*;
use std::io::{self, BufRead, Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context as Polled, Poll};
use std::time::Duration;

#[test]
fn clients_see_what_others_have_stored() {
    let server = started();
    let (mut one, mut other) = (server.client(), server.client());
    assert_eq!(one.ask("ping"), "PONG");
    assert_eq!(one.ask("mset a 1 b 2 c 3 d 4"), "OK");
    assert_eq!(other.ask("mget a b none c d"), "(1 2 nil 3 4)");
    assert_eq!(other.ask("incr a"), "2");
    assert_eq!(other.ask("del a b none"), "2");
    assert_eq!(one.ask("exists a c d"), "2");
    assert_eq!(one.ask("dbsize"), "2");
    assert_eq!(one.ask("rpush l x y"), "2");
    assert_eq!(other.ask("lrange l 0 -1"), "(x y)");
    assert_eq!(other.ask("hset h f v"), "1");
    assert!(one.ask("get l").starts_with("WRONGTYPE"));
    assert!(one.ask("info").contains("db0:keys=4,expires=0"));
    assert_eq!(one.ask("flushall"), "OK");
    assert_eq!(one.ask("dbsize"), "0");
    assert!(
        one.ask("nonsense")
            .starts_with("ERR unknown command 'nonsense'")
    );
    assert_eq!(one.ask("quit"), "OK");
    assert!(one.is_closed());
    server.stop();
}

#[test]
fn answers_come_in_the_order_of_the_requests() {
    let server = started();
    let mut client = server.client();
    let count = 10_000;
    let mut requests = String::new();
    for number in 0..count {
        requests.push_str(&format!(
            "set key{number} {number}\r\nget key{number}\r\nping\r\n"
        ));
    }
    // The answers do not fit into the sockets, so they are read at the same time.
    let mut writer = client.0.get_ref().try_clone().unwrap();
    let sends = std::thread::spawn(move || writer.write_all(requests.as_bytes()).unwrap());
    for number in 0..count {
        assert_eq!(client.answer(), "OK");
        assert_eq!(client.answer(), number.to_string());
        assert_eq!(client.answer(), "PONG");
    }
    sends.join().unwrap();
    assert_eq!(client.ask("dbsize"), count.to_string());
    server.stop();
}

#[test]
fn keys_end_by_themselves() {
    let server = started();
    let mut client = server.client();
    assert_eq!(client.ask("set short 1 px 20"), "OK");
    assert_eq!(client.ask("set long 1 ex 1000"), "OK");
    until("the key is gone", || client.ask("dbsize") == "1");
    assert_eq!(client.ask("ttl long"), "1000");
    assert_eq!(client.ask("get short"), "nil");
    server.stop();
}

#[test]
fn subscribers_get_what_is_published() {
    let server = started();
    let (mut one, mut other, mut publisher) = (server.client(), server.client(), server.client());
    assert_eq!(one.ask("subscribe news"), "(subscribe news 1)");
    assert_eq!(one.ask("subscribe more"), "(subscribe more 2)");
    assert_eq!(other.ask("subscribe news"), "(subscribe news 1)");
    assert!(one.ask("get key").starts_with("ERR Can't execute 'get'"));
    assert_eq!(one.ask("ping"), "(pong )");
    assert_eq!(publisher.ask("publish news hello"), "2");
    assert_eq!(publisher.ask("publish more again"), "1");
    assert_eq!(publisher.ask("publish none hello"), "0");
    assert_eq!(one.answer(), "(message news hello)");
    assert_eq!(one.answer(), "(message more again)");
    assert_eq!(other.answer(), "(message news hello)");
    assert_eq!(one.ask("unsubscribe news"), "(unsubscribe news 1)");
    assert_eq!(publisher.ask("publish news again"), "1");
    assert_eq!(one.ask("unsubscribe"), "(unsubscribe more 0)");
    assert_eq!(one.ask("get key"), "nil");
    drop(other);
    until("the subscriber is gone", || {
        publisher.ask("publish news gone") == "0"
    });
    server.stop();
}

#[test]
fn what_is_no_request_is_refused_and_the_others_are_served() {
    let server = started();
    let mut good = server.client();
    for bad in [
        &b"*1\r\n$-5\r\n"[..],
        b"*99999999\r\n",
        b"*1\r\n$999999999\r\n",
        b"*2\r\n+x\r\n",
        &[b'x'; 100_000],
    ] {
        let mut client = server.client();
        // The server may close it before all is sent.
        let _ = client.0.get_mut().write_all(bad);
        let mut answer = Vec::new();
        let _ = client.0.read_to_end(&mut answer);
        assert!(
            answer.is_empty() || answer.starts_with(b"-ERR Protocol error"),
            "{}",
            answer.escape_ascii()
        );
        assert_eq!(good.ask("ping"), "PONG");
    }
    server.stop();
}

#[test]
fn a_client_that_stops_within_a_request_is_closed() {
    let settings = Settings {
        patience: Duration::from_millis(20),
        ..Settings::default()
    };
    let server = start(settings);
    let (mut slow, mut idle) = (server.client(), server.client());
    slow.send(b"*2\r\n$3\r\nget\r\n$100\r\nhalf");
    assert!(slow.is_closed());
    // A client without a begun request may stay.
    assert_eq!(idle.ask("ping"), "PONG");
    server.stop();
}

#[test]
fn more_clients_than_there_may_be_are_told_so() {
    let settings = Settings {
        clients: 2,
        ..Settings::default()
    };
    let server = start(settings);
    let mut clients = [server.client(), server.client()];
    assert!(clients.iter_mut().all(|it| it.ask("ping") == "PONG"));
    let mut third = server.client();
    assert_eq!(third.line(), "-ERR max number of clients reached");
    assert!(third.is_closed());
    drop(clients);
    until("there is room", || {
        let mut client = server.client();
        let asked = client.0.get_mut().write_all(b"ping\r\n");
        let mut answer = String::new();
        asked.is_ok() && client.0.read_line(&mut answer).is_ok() && answer == "+PONG\r\n"
    });
    server.stop();
}

#[test]
fn a_client_that_takes_no_answers_is_read_no_further() {
    let server = start(Settings {
        patience: Duration::from_millis(200),
        ..Settings::default()
    });
    let mut good = server.client();
    let text = "x".repeat(10_000);
    assert_eq!(good.ask(&format!("append key {text}")), "10000");
    let mut greedy = server.client();
    let requests = "get key\r\n".repeat(10_000);
    // Of the 10 GB of answers, the server makes enough to fill the sockets, and then gives up.
    let sent = (0..100).try_for_each(|_| greedy.0.get_mut().write_all(requests.as_bytes()));
    assert!(sent.is_err());
    let is_alone = |info: String| info.contains("connected_clients:1\r\n");
    until("the other one is gone", || is_alone(good.ask("info")));
    server.stop();
}

/// A client that has sent all its input, and takes all answers. Notes the longest write, which the
/// server has in its memory.
struct Takes {
    says: io::Cursor<Vec<u8>>,
    most: Arc<AtomicUsize>,
}

impl AsyncRead for Takes {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Polled<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(self.says.read(buffer))
    }
}

impl AsyncWrite for Takes {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Polled<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // Ordering: Relaxed: a number alone.
        self.most.fetch_max(bytes.len(), Ordering::Relaxed);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Polled<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Polled<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Asks for a long value many times in a short request.
#[test]
fn an_answer_of_many_long_values_is_not_made_at_once() {
    const LONG: usize = 100_000;
    let scheduler = Scheduler::start_default().unwrap();
    let keys = vec![Keys::new()];
    let shard = scheduler.spawn(Shard::new(&keys[0])).unwrap();
    let shards = vec![shard.address().clone()];
    let server = Arc::new(Server::new(&scheduler, Settings::default(), shards, keys));
    let says = format!("append key {}\r\n", "x".repeat(10_000)).repeat(LONG / 10_000)
        + &format!("mget{}\r\n", " key".repeat(500));
    let most = Arc::new(AtomicUsize::new(0));
    let takes = Takes {
        says: io::Cursor::new(says.into_bytes()),
        most: Arc::clone(&most),
    };
    let serves = scheduler
        .spawn(async move |cx| Ok(connection::serve(cx, takes, server).await?))
        .unwrap();
    serves.wait().into_result().unwrap();
    // Ordering: Relaxed: a number alone.
    let most = most.load(Ordering::Relaxed);
    assert_eq!(most, LONG, "the value where it is stored, and no copy");
}

/// Sends requests for whole lists among others. The answers of requests carried out together are in
/// memory at the same time.
#[test]
fn requests_for_whole_lists_are_carried_out_alone() {
    let says = "get a\r\nget b\r\nlrange c 0 -1\r\nkeys *\r\nget d\r\nhgetall e\r\nget f\r\n";
    assert_eq!(carried_out_by_the_shard(says, Vec::new()), [3, 1, 2, 1]);
}

/// Sends commands that a connection does not carry out itself: others wait for the keys while a
/// connection has them.
#[test]
fn a_connection_carries_out_no_more_than_some_short_commands_itself() {
    let many = format!("mget{}\r\n", " key".repeat(300));
    let says = format!("watch a\r\nunwatch\r\ninfo\r\nflushall\r\n{many}");
    let by_the_shard = carried_out_by_the_shard(&says, vec![Keys::new()]);
    assert_eq!(by_the_shard, [1, 1, 300]);
}

/// Counts the commands that the shard's process carries out together.
fn carried_out_by_the_shard(says: &str, keys: Vec<Keys>) -> Vec<usize> {
    let scheduler = Scheduler::start_default().unwrap();
    let (together, seen) = mpsc::channel();
    let shard = actor_fn(move |_, work: Work, _| {
        let Work::Batch(batch) = work else {
            panic!("no transaction");
        };
        together.send(batch.jobs.len())?;
        let answers = batch.jobs.iter().map(|_| Answer::List(vec![Answer::OK; 3]));
        batch.reply.complete(answers.collect());
        Ok(())
    });
    let shard = scheduler.spawn(shard).unwrap();
    let shards = vec![shard.address().clone()];
    let server = Arc::new(Server::new(&scheduler, Settings::default(), shards, keys));
    let takes = Takes {
        says: io::Cursor::new(says.into()),
        most: Arc::default(),
    };
    let serves = scheduler
        .spawn(async move |cx| Ok(connection::serve(cx, takes, server).await?))
        .unwrap();
    serves.wait().into_result().unwrap();
    seen.try_iter().collect()
}

/// Lets others run beside a fast client whose keys are free: no other wait gives them turns.
#[test]
fn others_have_turns_beside_a_fast_client() {
    let scheduler = Scheduler::builder()
        .workers(1)
        .max_spares(0)
        .start()
        .unwrap();
    let keys = vec![Keys::new()];
    let shard = scheduler.spawn(Shard::new(&keys[0])).unwrap();
    let shards = vec![shard.address().clone()];
    let server = Arc::new(Server::new(&scheduler, Settings::default(), shards, keys));
    let (turns, is_over) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let takes = Takes {
        says: io::Cursor::new("get key\r\n".repeat(100 * TOGETHER).into_bytes()),
        most: Arc::default(),
    };
    let (seen, over) = (Arc::clone(&turns), Arc::clone(&is_over));
    // Ordering: Relaxed for all in this test: both are processes of the same worker.
    let other = scheduler.spawn(async move |cx: Cx| {
        while !over.load(Ordering::Relaxed) {
            seen.fetch_add(1, Ordering::Relaxed);
            cx.yield_now().await;
        }
        Ok(())
    });
    let serves = scheduler.spawn(async move |cx| {
        let before = turns.load(Ordering::Relaxed);
        connection::serve(cx, takes, server).await?;
        is_over.store(true, Ordering::Relaxed);
        Ok(turns.load(Ordering::Relaxed) - before)
    });
    let turns = serves.unwrap().wait().take::<usize>().unwrap();
    assert!(
        turns >= 90,
        "{turns} turns for 100 times as many requests as are taken together"
    );
    other.unwrap().wait().into_result().unwrap();
}

/// Publishes to a slow subscriber. A publication takes memory until the subscriber takes it, and
/// all publications share a limit.
#[test]
fn what_subscribers_do_not_take_is_limited() {
    let server = start(Settings {
        under_way: 1 << 20,
        ..Settings::default()
    });
    let (mut slow, mut publisher) = (server.client(), server.client());
    let names = (0..=1_000).map(|it| format!(" c{it}")).collect::<String>();
    slow.send(format!("subscribe news{names}\r\n").as_bytes());
    let answers: Vec<_> = (0..1_002).map(|_| slow.answer()).collect();
    assert_eq!(answers[999], "(subscribe c998 1000)");
    assert!(
        answers[1_000..]
            .iter()
            .all(|it| it.starts_with("ERR too many channels"))
    );
    let publish = format!("publish news {}", "x".repeat(10_000));
    let mut published = 0;
    // The sockets take some, and then the mailbox of the subscriber that does not read.
    let refused = loop {
        match publisher.ask(&publish) {
            answer if answer == "1" => published += 1,
            answer => break answer,
        }
        assert!(published < 100_000, "without end");
    };
    assert!(
        refused.starts_with("ERR subscribers have not taken"),
        "{refused}"
    );
    for _ in 0..published {
        slow.answer();
    }
    until("all is taken", || publisher.ask(&publish) == "1");
    server.stop();
}

#[test]
fn a_stop_answers_what_was_read_and_closes() {
    let server = started();
    let (mut idle, mut busy) = (server.client(), server.client());
    assert_eq!(idle.ask("set key 1"), "OK");
    let mut writer = busy.0.get_ref().try_clone().unwrap();
    let sends = std::thread::spawn(move || {
        let requests = "get key\r\n".repeat(1_000);
        while writer.write_all(requests.as_bytes()).is_ok() {}
    });
    assert_eq!(busy.answer(), "1");
    let reads = std::thread::spawn(move || {
        let mut line = String::new();
        // The connection is closed, or reset, because of unread input.
        while busy.0.read_line(&mut line).is_ok_and(|count| count > 0) {
            assert!("$1\r\n1\r\n".contains(&*line), "{line}");
            line.clear();
        }
    });
    let address = server.address;
    server.stop();
    assert!(idle.is_closed());
    assert!(TcpStream::connect(address).is_err());
    sends.join().unwrap();
    reads.join().unwrap();
}
