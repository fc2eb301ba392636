//! `cargo xtask bench`: see `ganger_benches::driver`.

use clap::Parser;
use ganger_bench_options::options::{Options, list};
use ganger_benches::driver::execute;
use std::process::ExitCode;

/// The exit code for arguments that the program can't carry out.
const MISUSED: u8 = 2;

fn main() -> ExitCode {
    let options = Options::parse();
    if options.list {
        print!("{}", list());
        return ExitCode::SUCCESS;
    }
    execute(&options).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(MISUSED)
    })
}
