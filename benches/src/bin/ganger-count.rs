//! Something that Ganger does, over and over on one worker, for a tool that counts instructions.
//! `ganger_benches::driver::instructions` runs it under callgrind.

use clap::Parser;
use ganger_benches::driver::instructions::Act;
use std::process::ExitCode;

/// Does something over and over
#[derive(Debug, Parser)]
struct Options {
    /// What
    #[arg(value_enum)]
    act: Act,

    /// How much of it: the second number of rounds, or the first
    #[arg(long)]
    more: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match options.act.run(options.more) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            error.exit_code()
        }
    }
}
