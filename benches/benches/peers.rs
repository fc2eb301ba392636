//! Ganger's channels and locks compared with others: the same workloads in a single
//! process, in turns. Prints a Markdown table.
//!
//! Other load on the machine makes figures worse: compare minima, and distrust a median far above.

use clap::{Parser, ValueEnum};
use ganger_benches::contest::{HEAD, lines};
use ganger_benches::driver::machine::machine;
use ganger_benches::{channels, locks};
use std::num::NonZeroU16;

/// Compares Ganger's channels and locks with others
#[derive(Debug, Parser)]
#[command(bin_name = "cargo bench -p ganger-benches --bench peers --")]
struct Options {
    /// What is compared [default: all]
    what: Vec<What>,

    /// The number of runs of each workload by each peer, after a run that does not count
    #[arg(long, value_name = "N", default_value = "5")]
    reps: NonZeroU16,

    /// Small workloads: shows that they work, not how fast
    #[arg(long)]
    quick: bool,

    /// Only workloads whose names have this in them
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,

    /// `cargo bench` says this to every program
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// With tokio, async-channel, kanal, flume and Go
    Channels,
    /// With tokio, `parking_lot` and Go
    Locks,
}

fn main() {
    let options = Options::parse();
    let machine = machine(options.quick, String::new(), Vec::new());
    println!("{}, {}, {}\n", machine.cpu, machine.kernel, machine.rustc);
    println!("{HEAD}");
    let is_wanted = |what| options.what.is_empty() || options.what.contains(what);
    for what in What::value_variants().iter().filter(|what| is_wanted(what)) {
        let contests = match what {
            What::Channels => channels::contests(options.quick),
            What::Locks => locks::contests(options.quick),
        };
        for contest in contests {
            if contest.name.contains(&options.only) {
                print!("{}", lines(&contest.run(options.reps.get().into())));
            }
        }
    }
}
