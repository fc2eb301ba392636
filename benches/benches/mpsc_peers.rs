//! ganger-mpsc compared with its peers: the same workloads in a single process, in turns.
//!
//! `--features mimalloc` measures all of them with mimalloc in place of the system's allocator.
//! Other load on the machine makes figures worse: compare minima, and distrust a median far above.
//! The first group counts allocations; the other groups run with the counter off.

use clap::Parser;
use ganger_benches::contest::{Table, platform};
use ganger_benches::mailbox::{Counting, Group, MAILBOXES};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static HEAP: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

#[cfg(not(feature = "mimalloc"))]
#[global_allocator]
static HEAP: Counting<std::alloc::System> = Counting(std::alloc::System);

/// Compares ganger-mpsc with its peers
#[derive(Debug, Parser)]
#[command(bin_name = "cargo bench -p ganger-benches --bench mpsc_peers --")]
struct Options {
    /// Runs these groups only: heap, one_thread, drain, producers, push_all, blocking,
    /// bounded
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    only: Vec<Group>,

    /// The number of runs of each workload by each queue, after a run that does not count
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
    // The version of the standard library's is the compiler's.
    let packages: Vec<_> = MAILBOXES
        .into_iter()
        .filter(|&name| name != "std")
        .collect();
    let platform = platform(&packages, allocator());
    let table = Table {
        columns: &MAILBOXES,
    };
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

fn allocator() -> &'static str {
    if cfg!(feature = "mimalloc") {
        "mimalloc"
    } else {
        "the system's allocator"
    }
}
