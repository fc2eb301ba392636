//! The parser gives the sent requests, however they are cut, and fails for invalid input.

use super::cuts;
use super::example::protocol::{Answer, Limits, Parser, ProtocolError, Version, number};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use std::path::Path;

const SMALL: Limits = Limits {
    arguments: 8,
    argument: 64,
    request: 128,
    line: 32,
};

fn encode(request: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let texts = request.iter().cloned().map(Answer::text);
    Answer::List(texts.collect()).encode(Version::Two, &mut bytes);
    bytes
}

fn parse(parser: &mut Parser, bytes: &[u8]) -> Result<Vec<Vec<Bytes>>, ProtocolError> {
    parser.feed(bytes);
    let mut requests = Vec::new();
    while let Some(request) = parser.next()? {
        requests.push(request);
    }
    Ok(requests)
}

fn error(bytes: &[u8]) -> ProtocolError {
    parse(&mut Parser::new(SMALL), bytes).unwrap_err()
}

proptest! {
    #[test]
    fn requests_come_out_as_they_went_in_however_they_are_cut(
        requests in vec(vec(vec(any::<u8>(), 0..64), 1..4), 0..6),
        cuts in vec(1_usize..40, 1..20),
    ) {
        let limits = Limits { request: 1_000, ..SMALL };
        let mut parser = Parser::new(limits);
        let sent: Vec<u8> = requests.iter().flat_map(|it| encode(it)).collect();
        let (mut rest, mut got) = (&sent[..], Vec::new());
        for cut in cuts.iter().cycle() {
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            got.extend(parse(&mut parser, now).unwrap());
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(got, requests);
        prop_assert!(!parser.is_inside());
    }

    #[test]
    fn any_bytes_give_the_same_whether_they_come_at_once_or_one_by_one(
        bytes in vec(prop_oneof![
            Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), b'0'..=b'9', Just(b'-'), any::<u8>(),
        ], 0..200),
    ) {
        cuts::check(&bytes, SMALL);
    }
}

/// Cuts each input that the fuzzer has found. A package without the project has none.
#[test]
fn what_the_fuzzer_has_found_gives_the_same_however_it_is_cut() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    if !fuzz.exists() {
        return;
    }
    let mut count = 0;
    for input in fuzz.join("corpus/kv_requests").read_dir().unwrap() {
        let bytes = std::fs::read(input.unwrap().path()).unwrap();
        cuts::check(&bytes, SMALL);
        cuts::check(&bytes, Limits::default());
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn a_line_is_a_request_and_empty_ones_are_left_out() {
    let mut parser = Parser::new(SMALL);
    let requests = parse(&mut parser, b"\r\n*0\r\n*-1\r\n  get   key \nping\r\n").unwrap();
    assert_eq!(requests, [vec!["get", "key"], vec!["ping"]]);
}

/// Parses a whole request, after which the parser keeps no bytes: a silent client keeps none of the
/// memory of its last request.
#[test]
fn a_parser_that_waits_keeps_no_bytes() {
    let mut parser = Parser::new(SMALL);
    let mut requests = parse(&mut parser, &encode(&[vec![b'x'; 64]])).unwrap();
    let text = requests.remove(0).remove(0);
    assert!(text.is_unique(), "the parser has it, too");
}

#[test]
fn what_is_no_request_is_refused_as_soon_as_it_is_seen() {
    assert_eq!(error(b"*9\r\n"), ProtocolError::ArgumentCount);
    assert_eq!(error(b"*1x\r\n"), ProtocolError::ArgumentCount);
    assert_eq!(
        error(b"*99999999999999999999\r\n"),
        ProtocolError::ArgumentCount
    );
    assert_eq!(error(b"*1\r\n$65\r\n"), ProtocolError::ArgumentLength);
    assert_eq!(error(b"*1\r\n$-1\r\n"), ProtocolError::ArgumentLength);
    assert_eq!(error(b"*1\r\n:1\r\n"), ProtocolError::NoArgument(b':'));
    assert_eq!(error(b"*1\r\n\r\n"), ProtocolError::NoArgument(b'\r'));
    assert_eq!(error(b"*1\r\n$1\r\nabc"), ProtocolError::NoEnd);
    assert_eq!(error(&[b'x'; 33]), ProtocolError::LongLine);
    let mut large = b"*3\r\n".to_vec();
    large.extend(encode(&[vec![b'x'; 64]]).split_off(4));
    let mut larger = large.clone();
    larger.extend_from_slice(&large[4..]);
    larger.extend_from_slice(b"$1\r\n");
    assert_eq!(error(&larger), ProtocolError::LargeRequest);
}

#[test]
fn numbers_are_read_as_they_are_written() {
    for text in [
        "0",
        "-1",
        "42",
        "9223372036854775807",
        "-9223372036854775808",
    ] {
        assert_eq!(number(text.as_bytes()).unwrap().to_string(), text);
    }
    for text in [
        "",
        "-",
        "+1",
        "01",
        "-0",
        "1 ",
        "9223372036854775808",
        "one",
    ] {
        assert_eq!(number(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn an_error_stays_on_its_line() {
    let mut bytes = Vec::new();
    Answer::Error("ERR a\r\n+OK".into()).encode(Version::Two, &mut bytes);
    assert_eq!(bytes, b"-ERR a  +OK\r\n");
}
