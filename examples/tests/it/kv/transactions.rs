//! Transactions, scans, and refusals.

use super::clients::{Client, Running, start, started, until};
use super::example::server::Settings;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// Sends several requests with answers of a single line.
fn each<const N: usize>(client: &mut Client, requests: [&str; N]) -> [String; N] {
    requests.map(|it| client.ask(it))
}

#[test]
fn a_transaction_is_answered_as_a_whole() {
    let server = started();
    let mut client = server.client();
    let asked = each(
        &mut client,
        ["multi", "set a 1", "incr a", "lpush l x y", "mget a b l"],
    );
    assert_eq!(asked, ["OK", "QUEUED", "QUEUED", "QUEUED", "QUEUED"]);
    assert_eq!(client.ask("exec"), "(OK 2 2 (2 nil nil))");
    // A failed command fails alone.
    each(&mut client, ["multi", "incr l", "set b 2"]);
    let answer = client.ask("exec");
    assert!(
        answer.starts_with("(WRONGTYPE") && answer.ends_with(" OK)"),
        "{answer}"
    );
    assert_eq!(
        each(&mut client, ["multi", "set a 3", "discard"]),
        ["OK", "QUEUED", "OK"]
    );
    assert_eq!(client.ask("get a"), "2");
    assert_eq!(each(&mut client, ["multi", "exec"]), ["OK", "()"]);
    each(&mut client, ["multi", "set a"]);
    assert!(client.ask("exec").starts_with("EXECABORT"));
    for without in ["exec", "discard"] {
        assert!(client.ask(without).starts_with("ERR"), "{without}");
    }
    each(&mut client, ["multi"]);
    assert!(client.ask("multi").starts_with("ERR"));
    assert!(client.ask("watch a").starts_with("ERR"));
    each(&mut client, ["discard"]);
    let mut sees = server.client();
    assert_eq!(sees.ask("subscribe news"), "(subscribe news 1)");
    each(&mut client, ["multi", "publish news hello", "ping"]);
    assert_eq!(client.ask("exec"), "(1 PONG)");
    assert_eq!(sees.answer(), "(message news hello)");
    server.stop();
}

#[test]
fn a_transaction_is_none_when_a_watched_key_has_changed() {
    let server = started();
    let (mut one, mut other) = (server.client(), server.client());
    each(&mut one, ["mset a 1 b 2 c 3 d 4", "watch a b none"]);
    each(&mut one, ["get a", "multi", "set a 7", "set c 7"]);
    assert_eq!(one.ask("exec"), "(OK OK)");
    for change in ["set b 3", "del b", "set none 1", "expire a 100", "flushall"] {
        each(&mut other, ["mset a 1 b 2", "del none"]);
        each(&mut one, ["watch a b none", "multi", "set c 9"]);
        assert_ne!(other.ask(change), "nil");
        assert_eq!(one.ask("exec"), "nil", "{change}");
    }
    // Another's look, or an end of the watch, is no change.
    each(&mut other, ["set b 2", "set c 0"]);
    each(&mut one, ["watch b"]);
    each(&mut other, ["get b", "ttl b"]);
    assert_eq!(each(&mut one, ["multi", "incr b", "exec"])[2], "(3)");
    each(&mut one, ["watch b", "unwatch"]);
    each(&mut other, ["set b 9"]);
    assert_eq!(each(&mut one, ["multi", "incr b", "exec"])[2], "(10)");
    server.stop();
}

/// Moves amounts between shards: sums stay the same in any order of the shards' work, and a reader
/// sees a sum.
#[test]
fn transactions_of_several_shards_are_seen_as_a_whole() {
    const ROUNDS: usize = 200;
    let server = start(Settings {
        shards: 8,
        ..Settings::default()
    });
    let keys: Vec<_> = (0..6).map(|it| format!("account{it}")).collect();
    let mut all = server.client();
    for key in &keys {
        all.ask(&format!("set {key} 100"));
    }
    let look = format!("mget {}", keys.join(" "));
    thread::scope(|scope| {
        for number in 0..3 {
            let (mut client, keys) = (server.client(), &keys);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let from = &keys[(number + round) % keys.len()];
                    let to = &keys[(2 * number + 3 * round + 1) % keys.len()];
                    let transfer = [&*format!("decr {from}"), &*format!("incr {to}")];
                    each(&mut client, ["multi", transfer[0], transfer[1]]);
                    let answer = client.ask("exec");
                    assert!(!answer.contains("ERR"), "{answer}");
                }
            });
        }
        for _ in 0..ROUNDS {
            each(&mut all, ["multi", &look]);
            let sums = all.ask("exec");
            let sum = sums.trim_matches(['(', ')']).split(' ');
            assert_eq!(
                sum.map(|it| it.parse::<i64>().unwrap()).sum::<i64>(),
                600,
                "{sums}"
            );
        }
    });
    server.stop();
}

/// Closes clients in the middle of a transaction: the server goes on.
#[test]
fn a_client_that_goes_leaves_no_transaction() {
    let server = started();
    let mut control = server.client();
    for _ in 0..50 {
        let mut client = server.client();
        client.send(b"watch a b c\r\nmulti\r\nincr a\r\nincr b\r\nexec\r\n");
        drop(client);
    }
    until("all are gone", || {
        control.ask("info").contains("connected_clients:1\r\n")
    });
    each(&mut control, ["multi", "set a 1", "set b 1", "set c 1"]);
    assert_eq!(control.ask("exec"), "(OK OK OK)");
    server.stop();
}

#[test]
fn a_transaction_has_a_limit() {
    let server = started();
    let mut client = server.client();
    let text = "x".repeat(1 << 20);
    assert_eq!(client.ask("multi"), "OK");
    let set = format!(
        "*3\r\n$3\r\nset\r\n$1\r\nk\r\n${}\r\n{text}\r\n",
        text.len()
    );
    let answers: Vec<_> = (0..20)
        .map(|_| {
            client.send(set.as_bytes());
            client.answer()
        })
        .collect();
    assert!(
        answers[0] == "QUEUED" && answers[19].starts_with("ERR"),
        "{answers:?}"
    );
    assert!(client.ask("exec").starts_with("EXECABORT"));
    server.stop();
}

#[test]
fn a_scan_goes_through_all_shards() {
    let server = started();
    let mut client = server.client();
    for number in 0..200 {
        client.ask(&format!("set key{number} {number}"));
    }
    let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
    loop {
        let answer = client.ask(&format!("scan {cursor} match key* count 20"));
        let (next, keys) = answer[1..answer.len() - 1].split_once(' ').unwrap();
        let keys = keys
            .trim_matches(['(', ')'])
            .split(' ')
            .filter(|it| !it.is_empty());
        found.extend(keys.map(str::to_owned));
        if next == "0" {
            break;
        }
        cursor = next.to_owned();
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 200);
    assert!(client.ask("scan x").starts_with("ERR"));
    server.stop();
}

/// Chooses version 3, in which a client tells pushes, maps and nothing from lists and texts.
#[test]
fn a_client_chooses_its_version_of_the_protocol() {
    let server = started();
    let (mut client, mut other) = (server.client(), server.client());
    assert!(client.ask("hello").contains("proto 2"));
    assert!(client.ask("hello 4").starts_with("NOPROTO"));
    assert!(client.ask("hello 3").ends_with("proto 3}"));
    assert_eq!(
        each(&mut client, ["hset h f v", "hgetall h"]),
        ["1", "{f v}"]
    );
    assert_eq!(client.ask("get nothing"), "none");
    assert_eq!(client.ask("subscribe news"), "(subscribe news 1)");
    // The connection is not for messages alone.
    assert_eq!(each(&mut client, ["set a 1", "ping"]), ["OK", "PONG"]);
    assert_eq!(other.ask("publish news hello"), "1");
    assert_eq!(client.answer(), "(message news hello)");
    assert_eq!(
        each(&mut other, ["hgetall h", "get nothing"]),
        ["(f v)", "nil"]
    );
    server.stop();
}

/// Sends lines as by a page in a browser: the server hangs up.
#[test]
fn lines_of_the_web_are_hung_up_on() {
    let server = started();
    let mut control = server.client();
    for line in ["POST / HTTP/1.1", "post", "Host: localhost:6400", "hOST:"] {
        let mut client = server.client();
        client.send(format!("ping\r\n{line}\r\nset evil 1\r\n").as_bytes());
        assert_eq!(client.answer(), "PONG");
        assert!(client.is_closed(), "{line}");
    }
    assert_eq!(control.ask("get evil"), "nil");
    server.stop();
}

/// Connects slow clients to a server, each waiting for a long text of another version.
fn slow_clients(server: &Running, bytes: usize, count: usize) -> Vec<TcpStream> {
    let mut writer = server.client();
    let slow = (0..count).map(|number| {
        let text = number.to_string().repeat(bytes);
        let text = &text[..bytes];
        writer.send(format!("*3\r\n$3\r\nset\r\n$1\r\nk\r\n${bytes}\r\n{text}\r\n").as_bytes());
        assert_eq!(writer.answer(), "OK");
        let mut client = TcpStream::connect(server.address).unwrap();
        client.write_all(b"get k\r\n").unwrap();
        // Its answer has begun.
        let mut first = [0];
        client.read_exact(&mut first).unwrap();
        if number == count - 1 {
            assert_eq!(first, *b"-", "the limit");
        }
        client
    });
    slow.collect()
}

#[test]
fn long_texts_on_their_way_have_a_limit_for_all_clients() {
    const BYTES: usize = 6 << 20;
    let server = start(Settings {
        answers: 3 * BYTES,
        patience: Duration::from_secs(60),
        ..Settings::default()
    });
    let slow = slow_clients(&server, BYTES, 4);
    // The same text is there once, for any number.
    let again: Vec<_> = (0..3).map(|_| server.client()).collect();
    drop(slow);
    let mut control = server.client();
    until("they are gone", || {
        control.ask("info").contains("connected_clients:4\r\n")
    });
    for mut client in again {
        client.send(b"get k\r\n");
        assert_eq!(client.answer().len(), BYTES);
    }
    let gone = TcpStream::connect(server.address).unwrap();
    gone.set_read_timeout(Some(Duration::from_millis(1)))
        .unwrap();
    let waits = (&gone).read(&mut [0]).unwrap_err().kind();
    assert!(matches!(waits, ErrorKind::WouldBlock | ErrorKind::TimedOut));
    drop(gone);
    drop(control);
    server.stop();
}
