//! ganger-deque compared with crossbeam-deque and st3: the same workloads in a single process, in
//! turns.
//!
//! `GANGER_MEMBARRIER=off` in the environment measures ganger-deque with full fences. Other load on
//! the machine makes figures worse: compare minima, and distrust a median far above.

use clap::Parser;
use ganger_benches::contest::{Table, platform};
use ganger_benches::deque::{DEQUES, Group};

/// Compares ganger-deque with crossbeam-deque and st3
#[derive(Debug, Parser)]
#[command(bin_name = "cargo bench -p ganger-benches --bench deque_peers --")]
struct Options {
    /// Runs these groups only: push_pop, steal, probe, owner, fork_join
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    only: Vec<Group>,

    /// The number of runs of each workload by each deque, after a run that does not count
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
    let fences = if ganger_sync::fence::is_asymmetric() {
        "Ganger's fences asymmetric: membarrier"
    } else {
        "Ganger's fences full"
    };
    let platform = platform(&DEQUES, fences);
    let table = Table { columns: &DEQUES };
    let groups = Group::ALL
        .into_iter()
        .filter(|group| options.only.is_empty() || options.only.contains(group));
    let outcomes = groups
        .flat_map(|group| group.contests(options.quick))
        .map(|contest| contest.run(options.reps.into()));
    if options.markdown {
        let outcomes: Vec<_> = outcomes.collect();
        print!("{}", table.markdown(&outcomes));
        println!("\nThe minimum of {}. {platform}.", options.reps);
    } else {
        println!("{platform}; {} repetitions\n", options.reps);
        print!("{}", Table::head());
        for outcome in outcomes {
            print!("{}", table.lines(&outcome));
        }
    }
}
