//! Bytes as the text of a PID.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    ganger_model::check_pid_text(bytes);
});
