//! Bytes as a frame between two nodes.

#![no_main]

#[path = "../../crates/cluster/tests/it/wire/checker.rs"]
mod checker;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    checker::check(bytes);
});
