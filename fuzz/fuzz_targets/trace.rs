//! Bytes as the file of a trace.

#![no_main]

#[path = "../../crates/observe/tests/it/trace/checker.rs"]
mod checker;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    checker::check(bytes);
});
