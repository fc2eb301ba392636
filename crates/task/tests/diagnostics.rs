//! The compiler's messages for mistakes of new users.
//!
//! Each program of `tests/wrong` has a single mistake, and the compiler's text in a file of the
//! same name. The text of another compiler may differ: then nothing is compared.
//! `TRYBUILD=overwrite` writes the texts anew.

#![cfg(not(any(ganger_loom, miri)))]

use std::process::Command;

/// The compiler of `rust-toolchain.toml`, whose texts these are.
const COMPILER: &str = "rustc 1.95.0 ";

#[test]
fn each_mistake_is_named_with_what_is_right() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().unwrap();
    if !String::from_utf8_lossy(&version.stdout).starts_with(COMPILER) {
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/wrong/*.rs");
}
