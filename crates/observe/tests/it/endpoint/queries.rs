//! Queries as text.

use super::query_checker::check;
use ganger_observe::api::{By, ProcessesQuery};
use proptest::prelude::*;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Texts near to queries.
fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "(top|by|window|filter|scheduler|x)=[a-z0-9:%+ -]{0,12}",
        "filter=(-?(state|type|method|name|pid|parent):?[a-z:]{0,6}[+ ]?){0,4}",
        "(top=[0-9]{1,5}|by=(mailbox|quiet|pid|busy|age)|scheduler=[0-9]{1,21})",
        "window=[0-9]{1,5}m?s",
        ".{0,10}",
    ];
    proptest::collection::vec(part, 0..4).prop_map(|parts| parts.join("&"))
}

#[test]
fn a_query_means_the_same_when_it_is_written_again() {
    proptest!(config(), |(text in texts())| {
        check(text.as_bytes());
    });
}

/// Reads the first inputs of the fuzzer, and its findings.
#[test]
fn the_corpus_is_read() {
    let corpus = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/processes_query"
    );
    let mut read = 0;
    for file in std::fs::read_dir(corpus).unwrap() {
        check(&std::fs::read(file.unwrap().path()).unwrap());
        read += 1;
    }
    assert!(read > 0);
}

#[test]
fn a_query_is_read_part_by_part() {
    let query: ProcessesQuery = "".parse().unwrap();
    assert_eq!(query, ProcessesQuery::default());
    assert_eq!(
        (query.top, query.by, query.scheduler),
        (50, By::Mailbox, None)
    );
    let text = "by=quiet&scheduler=3&filter=-a::b%20type:c+state:idle&top=1000";
    let query: ProcessesQuery = text.parse().unwrap();
    assert_eq!(
        (query.top, query.by, query.scheduler),
        (1000, By::Quiet, Some(3))
    );
    let terms = query.filter.terms().iter().map(ToString::to_string);
    assert!(terms.eq(["-a::b", "type:c", "state:idle"]));
    let long = format!("filter={}", "a".repeat(257));
    let error = long.parse::<ProcessesQuery>().unwrap_err();
    assert!(error.to_string().contains("257 bytes"));
}
