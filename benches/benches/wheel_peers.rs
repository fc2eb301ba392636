//! ganger-wheel compared with other timers: the same workloads in a single process, in turns.
//!
//! Other load on the machine makes figures worse: compare minima, and distrust a median far above.

use clap::Parser;
use ganger_benches::contest::{Table, platform};
use ganger_benches::timers::{PEERS, contests};

/// Compares ganger-wheel with tokio, hierarchical_hash_wheel_timer and a BTreeMap
#[derive(Debug, Parser)]
#[command(bin_name = "cargo bench -p ganger-benches --bench wheel_peers --")]
struct Options {
    /// The number of runs of each workload by each peer, after a run that does not count
    #[arg(
        long,
        value_name = "N",
        default_value_t = 15,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    reps: u16,

    /// Small workloads: shows that they work, not how fast
    #[arg(long)]
    quick: bool,

    /// Prints a Markdown table, when all is done
    #[arg(long)]
    markdown: bool,

    /// `cargo bench` says this to every program
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let options = Options::parse();
    let platform = platform(&PEERS[..3], "times of the thread");
    let table = Table { columns: &PEERS };
    println!("{platform}; {} repetitions\n", options.reps);
    print!("{}", Table::head());
    let mut outcomes = Vec::new();
    for contest in contests(options.quick) {
        let outcome = contest.run(options.reps.into());
        print!("{}", table.lines(&outcome));
        outcomes.push(outcome);
    }
    if options.markdown {
        print!("\n{}", table.markdown(&outcomes));
    }
}
