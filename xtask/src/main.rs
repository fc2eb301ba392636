//! The project's own tasks; `cargo xtask --help` lists them.

mod bench;
mod book;
mod cargo;
mod ci;
mod clippy;
mod cluster_keys;
mod conformance;
mod engines;
mod features;
mod fuzz;
mod instructions;
mod loom;
mod metrics;
mod mutants;
mod packed;
mod program;
mod readme;
mod root;
mod rust;
mod sanitize;
mod soak;
mod step;
mod tidy;
mod totals;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Why a task failed, for people.
type Failure = Box<dyn std::error::Error>;

/// Tasks of the Ganger workspace
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Compares Ganger with its peers by measurement, and writes the result as a table
    ///
    /// `cargo xtask bench --help` tells more.
    #[command(disable_help_flag = true)]
    Bench(bench::Options),
    /// Builds the book of the documents, and opens it on demand
    ///
    /// Installs mdbook in `target/tools` where it is missing.
    Book(book::Options),
    /// Runs the gate: all checks that a change must pass before it is merged
    ///
    /// The steps run in order, each named and timed, until a step fails. The last line of the
    /// output says how many tests passed and failed.
    Ci(ci::Options),
    /// Writes an authority, and a certificate and a key for each node of a cluster
    ///
    /// The direct engine takes a node's folder by `keys(dir)`. A later call with the same folder
    /// adds nodes, or renews their certificates.
    ClusterKeys(cluster_keys::Options),
    /// Writes the table of `docs/CLUSTER.md`: which case of the cluster's conformance is tried over
    /// which engine
    Conformance,
    /// Runs the loom models, each in a process of its own, and times them
    ///
    /// Each model has a bound on preemptions with which it takes seconds: the bounded set, which
    /// the gate runs. The deep set raises the bound of all models.
    Loom(loom::Options),
    /// Writes `docs/METRICS.md` from the table of metrics
    Metrics,
    /// Checks that the tests notice mistakes: applies each mistake of a list, alone, and runs the
    /// tests
    ///
    /// Each mutant of a crate's list in `xtask/mutants` must make a test fail; a line for each
    /// names the test. A mutant that survives is an error, unless the list says why it must.
    Mutants(mutants::Options),
    /// Runs the tests of the lock-free crates under AddressSanitizer and ThreadSanitizer
    ///
    /// Needs a nightly toolchain, and its rust-src to look into the standard library as well. The
    /// table at the end says what was run and what could not be. The lists in `xtask/sanitize`
    /// suppress known false reports, with reasons; any other report is an error.
    Sanitize(sanitize::Options),
    /// Stresses a crate with real threads for as long as you like, with an account of every item
    ///
    /// A failure prints the lost, doubled or stuck items, and the seed that repeats it. Ctrl-C ends
    /// the scheduler's soak after a round, with its summary.
    Soak(soak::Options),
    /// Checks the house rules, as far as a machine can check them
    ///
    /// Prints a line `path:line: what` for each finding, and fails if any rule finds something.
    Tidy,
}

fn main() -> ExitCode {
    run(Options::parse().task).unwrap_or_else(|failure| {
        eprintln!("error: {failure}");
        ExitCode::FAILURE
    })
}

fn run(task: Task) -> Result<ExitCode, Failure> {
    match task {
        Task::Bench(options) => return Ok(bench::run(&options)),
        Task::Book(options) => book::run(options)?,
        Task::Ci(options) => ci::run(&options)?,
        Task::ClusterKeys(options) => cluster_keys::run(&options)?,
        Task::Conformance => conformance::run()?,
        Task::Loom(options) => loom::run(&options, &mut totals::Totals::default())?,
        Task::Metrics => metrics::run()?,
        Task::Mutants(options) => mutants::run(&options)?,
        Task::Sanitize(options) => sanitize::run(&options)?,
        Task::Soak(options) => return soak::run_in_place(&options),
        Task::Tidy => tidy::run()?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Parses the words behind `cargo xtask`.
    pub(crate) fn task(line: &str) -> Task {
        let words = ["cargo xtask"].into_iter().chain(line.split_whitespace());
        Options::parse_from(words).task
    }

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }
}
