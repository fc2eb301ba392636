//! The command line, and its checks before anything runs.

use crate::catalog::{Id, Peer};
use crate::mode::{Mode, Modes};
use crate::size::Size;
use clap::Parser;
use std::fmt::Write;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Compares Ganger with its peers, in turns, and writes the result as a table
///
/// Each run is a process of its own. Ctrl-C writes the results so far. The report is `report.md`
/// in the folder `--out`; docs/BENCHMARKS.md says how to read it.
///
/// `cargo xtask bench --instructions` counts instructions in place of measuring time; with `--help`
/// it tells more.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "cargo xtask bench",
    bin_name = "cargo xtask bench",
    max_term_width = 100
)]
pub struct Options {
    /// Small workloads and few repetitions: shows that they work, not how fast
    #[arg(long)]
    pub quick: bool,

    /// Runs these workloads only; `--list` shows them
    #[arg(long, value_name = "W1,deque,…", value_delimiter = ',')]
    pub only: Vec<Id>,

    /// Runs these peers only, and Ganger; `--list` shows them
    #[arg(long, value_name = "tokio,go,…", value_delimiter = ',')]
    pub peers: Vec<Peer>,

    /// How many times each peer runs each workload [default: 5, quick: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub reps: Option<u16>,

    /// How many threads run processes, everywhere: no curve over workers [default: as many as
    /// cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,

    /// Measures whole workloads as the machine is, with an idle-priority loop on every processor,
    /// or both [default: both, quick: as-is]
    #[arg(long, value_enum)]
    pub mode: Option<Modes>,

    /// Writes the figures to this file, as lines of JSON [default: results.jsonl in the folder
    /// --out]
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Compares Ganger's figures with an earlier JSON, and exits with 1 if a figure is worse
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,

    /// How much worse than the baseline is worse, beyond the noise of the runs, in percent
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = part)]
    pub threshold: f64,

    /// Where the report goes [default: bench, in cargo's target folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Replaces the tables in README.md, docs/PERFORMANCE.md and docs/LIMITS.md, and the charts
    #[arg(long, conflicts_with_all = ["quick", "only", "peers"])]
    pub readme: bool,

    /// Allocates with mimalloc in place of the system's allocator: Ganger and all peers in Rust
    #[arg(long)]
    pub mimalloc: bool,

    /// Runs nothing: takes the figures of an earlier JSON
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["quick", "only", "peers", "reps", "workers", "mode", "json"]
    )]
    pub from: Option<PathBuf>,

    /// Ends a run after this many seconds [default: 180, quick: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub limit: Option<u64>,

    /// Lists workloads and peers, and runs nothing
    #[arg(long)]
    pub list: bool,
}

impl Options {
    /// Returns how much each run does.
    pub fn size(&self) -> Size {
        if self.quick { Size::Quick } else { Size::Full }
    }

    /// Returns how many times each peer runs each workload.
    pub fn reps(&self) -> usize {
        let default = if self.quick { 3 } else { 5 };
        self.reps.map_or(default, usize::from)
    }

    /// Returns the modes to measure.
    pub fn modes(&self) -> &'static [Mode] {
        let default = if self.quick { Modes::AsIs } else { Modes::Both };
        self.mode.unwrap_or(default).all()
    }

    /// Returns how long a run may take.
    pub fn limit(&self) -> Duration {
        let default = if self.quick { 60 } else { 180 };
        Duration::from_secs(self.limit.unwrap_or(default))
    }
}

/// Workloads and peers, for people.
pub fn list() -> String {
    let mut text = String::new();
    for &id in Id::ALL {
        let spec = id.spec();
        let peers: Vec<_> = spec.peers.iter().map(|peer| peer.name()).collect();
        let _ = writeln!(text, "{id:<8} {}: {}", spec.name, spec.what);
        let _ = writeln!(text, "{:<8} {}", "", peers.join(", "));
    }
    text + PROGRAMS
}

/// Further programs of comparisons with peers: the workload, the program's name, its acts, and its
/// peers.
const PROGRAMS: &str = "
Programs of their own: cargo bench -p ganger-benches --bench NAME -- --help
K1       peers: locks: a free mutex, and one of 2 and 1,000 tasks; semaphores, 10,000 wake-ups
         ganger, tokio, parking_lot, go
K2       peers: channels of capacity 0, 1 and 1,024, 1 to 1 and 100 to 100; a select of four
         ganger, tokio, async-channel, kanal, flume, go
W18, W20 net_peers: echo by 1, 64 and 1,000 connections, idle connections, HTTP by wrk
         ganger, tokio, go, async-io, epoll
W21      kv_peers: the protocol of Redis by redis-benchmark
         ganger, tokio, redis-server
";

/// Returns the part of the whole that a text says in percent.
fn part(percent: &str) -> Result<f64, &'static str> {
    match percent.trim_end_matches('%').parse::<f64>() {
        Ok(percent) if (0.0..=1_000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a number of percent from 0 to 1000 is needed"),
    }
}

/// Returns how many processors this program may use.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(args: &str) -> Result<Options, String> {
        let args = ["bench"].into_iter().chain(args.split_whitespace());
        Options::try_parse_from(args).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
        let options = parse("--only w1,deque --peers tokio,go --quick --threshold 7.5%").unwrap();
        assert_eq!(options.only, [Id::W1, Id::Deque]);
        assert_eq!(options.peers, [Peer::Tokio, Peer::Go]);
        assert_eq!((options.reps(), options.modes()), (3, &[Mode::AsIs][..]));
        assert!((options.threshold - 0.075).abs() < 1e-9);
        let options = parse("--mode both --reps 9").unwrap();
        assert_eq!(
            (options.reps(), options.modes()),
            (9, &[Mode::AsIs, Mode::Loops][..])
        );
    }

    #[test]
    fn what_is_wrong_or_excludes_each_other_is_refused() {
        for (args, why) in [
            ("--only W1,W99", "no workload `W99`; there are W1, W2, "),
            ("--peers tokio,akka", "no peer `akka`; there are ganger, "),
            ("--mode calm", "as-is, loops, both"),
            ("--threshold lots", "a number of percent"),
            ("--reps 0", "0 is not in"),
            ("--from a.jsonl --only W1", "cannot be used with"),
            ("--readme --quick", "cannot be used with"),
            ("--readme --peers tokio", "cannot be used with"),
        ] {
            let error = parse(args).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(parse("--from a.jsonl --readme --baseline b.jsonl").is_ok());
    }
}
