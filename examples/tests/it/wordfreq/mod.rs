//! The example `wordfreq`: the tests of its parts, and the program, its counts against a plain
//! counter's and the way it treats its user.

mod behaviour;
mod counts;
#[path = "../../../wordfreq/main.rs"]
#[expect(dead_code, reason = "the example's own `main`")]
mod example;
#[cfg(unix)]
mod interrupt;
mod plain;
mod program;
#[cfg(unix)]
mod special_files;
