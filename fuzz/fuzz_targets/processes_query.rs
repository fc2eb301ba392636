//! Bytes as the query for a list of processes.

#![no_main]

#[path = "../../crates/observe/tests/it/endpoint/query_checker.rs"]
mod query_checker;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    query_checker::check(bytes);
});
