//! Any bytes give the same requests, and the same error, at once or byte by byte. The fuzzer uses
//! this check, too.

use super::example::protocol::{Limits, Parser, ProtocolError, Request};

pub(crate) fn check(bytes: &[u8], limits: Limits) {
    let mut parser = Parser::new(limits);
    parser.feed(bytes);
    let (requests, error) = all(&mut parser);
    for request in &requests {
        let lengths = request.iter().map(|it| it.len());
        assert!(lengths.sum::<usize>() <= limits.request.max(limits.line));
        assert!(!request.is_empty());
    }
    let at_once = (requests, error);

    let mut parser = Parser::new(limits);
    let mut one_by_one = (Vec::new(), None);
    for byte in bytes {
        parser.feed(&[*byte]);
        let (requests, error) = all(&mut parser);
        one_by_one.0.extend(requests);
        one_by_one.1 = error;
        if one_by_one.1.is_some() {
            break;
        }
    }
    assert_eq!(at_once, one_by_one, "{}", bytes.escape_ascii());
}

fn all(parser: &mut Parser) -> (Vec<Request>, Option<ProtocolError>) {
    let mut requests = Vec::new();
    loop {
        match parser.next() {
            Ok(Some(request)) => requests.push(request),
            Ok(None) => return (requests, None),
            Err(error) => return (requests, Some(error)),
        }
    }
}
