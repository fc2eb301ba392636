//! The commands on a store and their answers, one after the other.

use super::example::commands::{self, Route};
use super::example::protocol::Answer;
use super::example::store::{Store, whole};
use bytes::Bytes;
use ganger::time::Instant;
use proptest::prelude::*;
use std::collections::HashMap;
use std::time::Duration;

const START: Instant = Instant::from_nanos(0);

fn run(store: &mut Store, line: &str) -> Answer {
    let mut words = line.split(' ');
    let name = words.next().unwrap();
    let args: Vec<_> = words
        .map(|it| Bytes::copy_from_slice(it.as_bytes()))
        .collect();
    let operation = match commands::find(name.as_bytes(), args.len()) {
        Ok(
            Route::Key(operation)
            | Route::Long(operation)
            | Route::Keys(_, operation, _)
            | Route::All(operation, _),
        ) => operation,
        Ok(Route::Here(_)) => panic!("{line} is not for a store"),
        Err(error) => return Answer::Error(error),
    };
    operation(store, &args).unwrap_or_else(|refused| Answer::Error(refused.to_string()))
}

/// Returns the answer in short: `nil`, a number, a text, `(a b)` for a list.
fn short(answer: &Answer) -> String {
    match answer {
        Answer::Status(text) => (*text).into(),
        Answer::Error(text) => text.split(' ').next().unwrap().into(),
        Answer::Number(number) => number.to_string(),
        Answer::Text(text) => String::from_utf8_lossy(text).into(),
        Answer::Nothing | Answer::NoList => "nil".into(),
        Answer::List(list) | Answer::Map(list) | Answer::Push(list) => {
            let list: Vec<_> = list.iter().map(short).collect();
            format!("({})", list.join(" "))
        }
    }
}

/// Checks a script: each line is a command, and behind `=>` its answer.
fn check(script: &str) {
    let mut store = Store::new(START);
    for line in script.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let (command, expected) = line.split_once(" => ").unwrap();
        let command = &command.replace("LONG", &"*".repeat(300));
        assert_eq!(short(&run(&mut store, command)), expected, "{line}");
    }
}

#[test]
fn texts() {
    check(
        "get a => nil
         set a 1 => OK
         GET a => 1
         set a 2 nx => nil
         set b 2 xx => nil
         set a 2 xx get => 1
         set a 3 ex => ERR
         set a 3 ex 0 => ERR
         set a 3 ex 1 keepttl => ERR
         set a 3 nx xx => ERR
         incr a => 3
         incrby a 10 => 13
         decr a => 12
         decrby a 20 => -8
         incr none => 1
         set a 9223372036854775807 => OK
         incr a => ERR
         decrby a -9223372036854775808 => ERR
         set a text => OK
         incr a => ERR
         append a ual => 7
         append c new => 3
         strlen a => 7
         strlen missing => 0
         type a => string
         setnx a 1 => 0
         setnx d 1 => 1
         getdel d => 1
         exists d => 0
         del a => 1
         del a => 0
         get => ERR
         unknown => ERR",
    );
}

#[test]
fn lists() {
    check(
        "rpush l a b c => 3
         lpush l z => 4
         lrange l 0 -1 => (z a b c)
         lrange l -2 100 => (b c)
         lrange l 2 1 => ()
         lrange l -100 0 => (z)
         lrange none 0 -1 => ()
         lindex l -1 => c
         lindex l -5 => nil
         lindex l 4 => nil
         llen l => 4
         lpop l => z
         rpop l 2 => (c b)
         rpop l 0 => ()
         lpop l -1 => ERR
         get l => WRONGTYPE
         mget l => nil
         lpush l x => 2
         lpop l 9223372036854775807 => (x a)
         exists l => 0
         lpop l => nil
         hset l f v => 1
         lpush l a => WRONGTYPE",
    );
}

#[test]
fn hashes() {
    check(
        "hset h a 1 b 2 => 2
         hset h a 3 c 4 => 1
         hset h a => ERR
         hset h a 1 b => ERR
         hget h a => 3
         hget h none => nil
         hmget h a none b => (3 nil 2)
         hlen h => 3
         hexists h c => 1
         hincrby h a 4 => 7
         hincrby h d -4 => -4
         hincrby h a x => ERR
         hdel h a b x => 2
         hdel h c d => 2
         exists h => 0
         hgetall h => ()
         hset h f v => 1
         hgetall h => (f v)
         hkeys h => (f)
         hvals h => (v)
         set h 1 => OK
         hget h f => WRONGTYPE",
    );
}

#[test]
fn all_keys() {
    check(
        "set one 1 => OK
         set other 2 => OK
         dbsize => 2
         keys o?e => (one)
         keys *h*r => (other)
         keys *x => ()
         keys LONG => ERR
         flushall => OK
         dbsize => 0",
    );
}

#[test]
fn ends_of_keys() {
    let mut store = Store::new(START);
    let at = |millis| START.after(Duration::from_millis(millis));
    let mut expect = |millis, line: &str, answer: &str| {
        store.at(at(millis));
        assert_eq!(short(&run(&mut store, line)), answer, "{line} at {millis}");
    };
    expect(0, "set a 1 ex 10", "OK");
    expect(0, "ttl a", "10");
    expect(0, "ttl none", "-2");
    expect(400, "pttl a", "9600");
    expect(400, "append a 2", "2");
    expect(500, "set a 3 keepttl", "OK");
    expect(500, "ttl a", "10");
    expect(9_999, "get a", "3");
    expect(10_000, "get a", "nil");
    expect(10_000, "set b 1 px 5", "OK");
    expect(10_000, "persist b", "1");
    expect(10_000, "persist b", "0");
    expect(10_000, "ttl b", "-1");
    expect(10_010, "pexpire b 5", "1");
    expect(10_010, "pexpire none 5", "0");
    expect(10_015, "exists b", "0");
    expect(10_015, "setex c 1 x", "OK");
    expect(10_015, "expire c -1", "1");
    expect(10_015, "exists c", "0");
    expect(10_015, "setex c 9223372036854775807 x", "ERR");
}

#[test]
fn changes_of_ends_are_for_the_timers() {
    let mut store = Store::new(START);
    let mut expect = |line: &str, changes: &[(&str, Option<u64>)]| {
        run(&mut store, line);
        let expected = changes.iter().map(|(key, lasts)| {
            (
                Bytes::from((*key).to_owned()),
                lasts.map(Duration::from_millis),
            )
        });
        assert_eq!(store.changes(), expected.collect::<Vec<_>>(), "{line}");
    };
    expect("set a 1", &[]);
    expect("set a 1 px 7", &[("a", Some(7))]);
    expect("set a 2", &[("a", None)]);
    expect("pexpire a 9", &[("a", Some(9))]);
    expect("persist a", &[("a", None)]);
    expect("setex b 1 x", &[("b", Some(1_000))]);
    expect("del b", &[("b", None)]);
    expect("setex b 2 x", &[("b", Some(2_000))]);
    expect("flushall", &[("b", None)]);
}

proptest! {
    #[test]
    fn a_store_answers_as_a_plain_map(
        steps in proptest::collection::vec((0_u8..4, 0_u8..5, 0_u8..10), 1..200),
    ) {
        let mut store = Store::new(START);
        let mut plain = HashMap::<u8, i64>::new();
        for (what, key, value) in steps {
            let (line, expected) = match what {
                0 => {
                    plain.insert(key, value.into());
                    (format!("set {key} {value}"), "OK".to_owned())
                }
                1 => {
                    let old = plain.get(&key).map_or("nil".to_owned(), i64::to_string);
                    (format!("get {key}"), old)
                }
                2 => {
                    let sum = plain.entry(key).or_default();
                    *sum += i64::from(value);
                    (format!("incrby {key} {value}"), sum.to_string())
                }
                _ => {
                    let removed = u8::from(plain.remove(&key).is_some());
                    (format!("del {key}"), removed.to_string())
                }
            };
            prop_assert_eq!(short(&run(&mut store, &line)), expected, "{}", line);
        }
        let size = plain.len().to_string();
        prop_assert_eq!(short(&run(&mut store, "dbsize")), size);
    }
}

/// Finds each key once in a scan, however many come and go meanwhile.
#[test]
fn a_scan_finds_each_key_that_stays_once() {
    let mut store = Store::new(START);
    for number in 0..100 {
        run(&mut store, &format!("set key{number} {number}"));
    }
    run(&mut store, "rpush list a");
    let (mut cursor, mut found, mut parts) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let scan = format!("{cursor} match key* count 7 type string");
        let args: Vec<_> = scan
            .split(' ')
            .map(|it| Bytes::from(it.to_owned()))
            .collect();
        let Ok(Answer::List(answer)) = whole::scan(&mut store, &args) else {
            panic!("a part of a scan");
        };
        let [Answer::Number(next), Answer::List(keys)] = &answer[..] else {
            panic!("{answer:?}");
        };
        assert!(keys.len() <= 7);
        found.extend(keys.iter().map(short));
        parts += 1;
        run(&mut store, &format!("del key{}", 99 - parts));
        run(&mut store, &format!("set late{parts} x"));
        if *next == 0 {
            break;
        }
        cursor = next.to_string();
    }
    found.sort();
    let before = found.len();
    found.dedup();
    assert_eq!(found.len(), before, "a key is found twice");
    for number in 0..=99 - parts - 1 {
        assert!(found.contains(&format!("key{number}")), "{number}");
    }
    for refused in ["x", "0 count", "0 count x", "0 count -1", "0 some thing"] {
        let args: Vec<_> = refused
            .split(' ')
            .map(|it| Bytes::from(it.to_owned()))
            .collect();
        assert!(whole::scan(&mut store, &args).is_err(), "{refused}");
    }
}

#[test]
fn a_version_changes_with_the_value_and_is_none_without() {
    let mut store = Store::new(START);
    let key = Bytes::from_static(b"a");
    assert_eq!(store.version(&key), 0);
    run(&mut store, "set a 1");
    let first = store.version(&key);
    run(&mut store, "get a");
    assert_eq!(store.version(&key), first);
    store.touch(&key);
    assert!(store.version(&key) > first);
    run(&mut store, "del a");
    assert_eq!(store.version(&key), 0);
}

#[test]
fn commands_that_change_nothing_are_known() {
    assert!(
        ["GET", "get", "Ttl", "LRANGE"]
            .iter()
            .all(|it| !commands::writes(it.as_bytes()))
    );
    assert!(
        ["SET", "del", "EXPIRE", "LPOP"]
            .iter()
            .all(|it| commands::writes(it.as_bytes()))
    );
}
