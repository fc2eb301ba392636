//! The check of a query, for tests and the fuzzer.

use ganger_observe::api::{ProcessesQuery, SocketsQuery};

/// Checks that a query means the same when it is written and read again.
pub(crate) fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match text.parse::<ProcessesQuery>() {
        Ok(query) => {
            assert!((1..=1000).contains(&query.top));
            assert_eq!(query.to_string().parse(), Ok(query), "{text:?}");
        }
        Err(error) => assert!(error.to_string().len() < 1_000, "{text:?}"),
    }
    match text.parse::<SocketsQuery>() {
        Ok(query) => {
            assert!((1..=1000).contains(&query.top));
            assert_eq!(query.to_string().parse(), Ok(query), "{text:?}");
        }
        Err(error) => assert!(error.to_string().len() < 1_000, "{text:?}"),
    }
}
