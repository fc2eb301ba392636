//! Servers without an endpoint, and broken or hostile endpoints.

use super::server::Server;
use ganger_observe::api::{By, ProcessesQuery};
use ganger_top::{Fault, Remote, Source as _};
use std::io::Write as _;
use std::time::Duration;

const LETTERS: &str = r#"{"version":1,"schedulers":[]}"#;

fn remote(server: &Server, token: Option<&str>) -> Remote {
    let address = server.address.to_string().parse().unwrap();
    Remote::new(address, token.map(str::to_owned)).unwrap()
}

/// Returns the fault of an answer.
fn fault(answer: impl Into<Vec<u8>>) -> Fault {
    let server = Server::of(answer);
    let fault = remote(&server, None).letters().unwrap_err();
    server.request();
    fault
}

#[test]
fn a_body_has_a_length_or_chunks_or_an_end() {
    let length = LETTERS.len();
    let (begin, end) = LETTERS.split_at(7);
    for answer in [
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{LETTERS} and more"),
        format!("HTTP/1.0 200 OK\r\n\r\n{LETTERS}"),
        format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\ncontent-length: 3\r\n\r\n\
             7;a=b\r\n{begin}\r\n{:X}\r\n{end}\r\n0\r\n\r\n",
            end.len()
        ),
        format!("HTTP/1.1 200 OK\ncontent-length:{length}\n\n{LETTERS}"),
    ] {
        let server = Server::of(answer.clone());
        let letters = remote(&server, None).letters();
        assert!(letters.is_ok_and(|it| it.schedulers.is_empty()), "{answer}");
        server.request();
    }
}

#[test]
fn a_request_names_its_host_and_its_token() {
    let server = Server::of("HTTP/1.1 401 Unauthorized\r\ncontent-length: 3\r\n\r\nno\n");
    let address = server.address;
    let mut query = ProcessesQuery::default();
    query.by = By::Busy;
    query.window = Some(Duration::from_secs(1));
    query.filter = "state:ready -a&b=c".parse().unwrap();
    query.scheduler = Some(2);
    let refused = remote(&server, Some("0123456789abcdef")).processes(&query);
    assert!(matches!(refused, Err(Fault::WrongToken)));
    let request = server.request();
    let expected = "GET /api/v1/processes?top=50&by=busy&window=1000ms\
                    &filter=state%3Aready+-a%26b%3Dc&scheduler=2 HTTP/1.1\r\n";
    assert!(request.starts_with(expected), "{request}");
    assert!(
        request.contains(&format!("\r\nhost: {address}\r\n")),
        "{request}"
    );
    assert!(
        request.contains("\r\nauthorization: Bearer 0123456789abcdef\r\n"),
        "{request}"
    );
    let address = address.to_string().parse().unwrap();
    let smuggled = Remote::new(address, Some("a\r\nb: c".to_owned()));
    assert!(matches!(smuggled, Err(Fault::Token)));
}

#[test]
fn a_pid_is_a_part_of_a_path() {
    let server = Server::of("HTTP/1.1 404 Not Found\r\n\r\nno live process has that PID\n");
    let missing = remote(&server, None).process(1, "{a/b?|7}\r\n");
    assert!(matches!(missing, Err(Fault::NotHere(it)) if it == "no live process has that PID"));
    let request = server.request();
    let expected = "GET /api/v1/process/%7Ba%2Fb%3F%7C7%7D%0D%0A?scheduler=1 HTTP/1.1\r\n";
    assert!(request.starts_with(expected), "{request}");
}

#[test]
fn another_version_says_which_is_which() {
    let server = Server::of("HTTP/1.1 200 OK\r\n\r\n{\"version\":7,\"letters\":[]}");
    let fault = remote(&server, None).letters().unwrap_err();
    server.request();
    let text = fault.to_string();
    assert!(
        text.contains("speaks version 7") && text.contains("this reader version 1"),
        "{text}"
    );
    assert!(!fault.may_pass());
}

#[test]
fn what_is_no_endpoint_is_told() {
    for (answer, part) in [
        (
            "SSH-2.0-OpenSSH_9.9\r\n",
            "its first line is none of HTTP/1.1",
        ),
        ("", "it ends early"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9", "it ends early"),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n123",
            "it ends early",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            "its content length is not a number",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
            "its transfer encoding",
        ),
        (
            "HTTP/1.1 200 OK\r\nno header\r\n\r\n",
            "a line of its head is not a header",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
            "the length of a chunk",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n",
            "longer than it says",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
            "it ends early",
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\n<html>",
            "not an answer of an endpoint of Ganger",
        ),
        (
            "HTTP/1.1 503 Busy\r\n\r\nask for less\n",
            "refused (503): ask for less",
        ),
    ] {
        let text = fault(answer).to_string();
        assert!(text.contains(part), "{answer:?}: {text}");
    }
}

#[test]
fn an_endless_head_is_cut_off() {
    let server = Server::new(|stream| {
        let line = b"x-more: 0123456789012345678901234567890123456789\r\n";
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(line).is_ok() {}
    });
    let fault = remote(&server, None).letters().unwrap_err();
    assert!(
        fault.to_string().contains("its head has more than 64 KiB"),
        "{fault}"
    );
    // The server ends, because the client has closed the connection.
    server.request();
}

#[test]
fn a_huge_body_is_refused_however_it_comes() {
    let huge = "HTTP/1.1 200 OK\r\ncontent-length: 33554433\r\n\r\n";
    assert!(matches!(fault(huge), Fault::Large(limit) if limit == 32 << 20));
    let chunk = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n";
    assert!(matches!(fault(chunk), Fault::Large(_)));
    let endless = |head: &'static str, part: Vec<u8>| {
        let server = Server::new(move |stream| {
            let _ = stream.write_all(head.as_bytes());
            while stream.write_all(&part).is_ok() {}
        });
        let fault = remote(&server, None).letters().unwrap_err();
        assert!(matches!(fault, Fault::Large(_)), "{fault}");
        server.request();
    };
    endless("HTTP/1.1 200 OK\r\n\r\n", vec![b'0'; 1 << 16]);
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = [b"400\r\n", &*vec![b'0'; 1 << 10], b"\r\n"].concat();
    endless(chunked, chunk.repeat(64));
}

#[test]
fn a_refusal_says_a_sentence_of_bounded_length() {
    let server = Server::new(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        while stream.write_all(&[b'a'; 4096]).is_ok() {}
    });
    let refused = remote(&server, None).groups().unwrap_err();
    let Fault::Refused { status, sentence } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(*status, 400);
    assert!((1..=8192).contains(&sentence.len()), "{}", sentence.len());
    assert!(!refused.may_pass());
    server.request();
}

#[test]
fn no_program_at_the_address_is_told() {
    let server = Server::of("");
    let address = server.address;
    let first = remote(&server, None);
    assert!(first.letters().is_err());
    server.request();
    let fault = first.letters().unwrap_err();
    assert!(fault.may_pass());
    let text = fault.to_string();
    assert!(
        text.starts_with(&format!("no answer at {address}: ")),
        "{text}"
    );
}
