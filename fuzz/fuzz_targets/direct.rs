//! Bytes of a connection between two nodes.

#![no_main]

#[path = "../../crates/cluster-direct/src/wire/checker.rs"]
mod checker;
#[allow(dead_code, unused_imports, reason = "the target is about the parsers")]
#[path = "../../crates/cluster-direct/src/wire/mod.rs"]
mod wire;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    checker::check(bytes);
});
