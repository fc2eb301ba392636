//! A bug in few orders of events, and how the simulation finds it: `cargo run -p ganger-sim
//! --example lost_reply`. With `-- --fixed` the bug is mended.

mod ask;

use ganger_sim::Sim;
use std::env;
use std::process::ExitCode;

const SEEDS: u64 = 1_000;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let is_fixed = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--fixed"] => true,
        _ => {
            eprintln!("usage: lost_reply [--fixed]");
            return ExitCode::from(2);
        }
    };
    Sim::check(SEEDS, |rt| ask::ask(rt, is_fixed));
    println!("The client has got its answer, whatever happened.");
    ExitCode::SUCCESS
}
