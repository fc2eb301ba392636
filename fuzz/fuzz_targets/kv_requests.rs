//! Bytes from a client of the example `kv`.

#![no_main]

#[allow(dead_code, reason = "what the server needs besides")]
#[path = "../../examples/kv/protocol.rs"]
mod protocol;

mod example {
    pub(crate) use super::protocol;
}

#[path = "../../examples/tests/it/kv/cuts.rs"]
mod cuts;

use example::protocol::Limits;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        arguments: 8,
        argument: 64,
        request: 128,
        line: 32,
    };
    cuts::check(bytes, limits);
});
