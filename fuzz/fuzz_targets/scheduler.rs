//! Bytes as a plan: operations on the scheduler, in a simulation.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    ganger_model::play_bytes(bytes);
});
