//! The example `wordfreq`, run as a program: its counts against a plain counter's, and the way it
//! treats its user.

mod behaviour;
mod counts;
#[cfg(unix)]
mod interrupt;
mod plain;
mod program;
#[cfg(unix)]
mod special_files;
