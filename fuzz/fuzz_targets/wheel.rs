//! Bytes as operations on a timing wheel.

#![no_main]

#[path = "../../crates/wheel/tests/it/checker.rs"]
mod checker;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    checker::Checker::play_bytes(bytes);
});
