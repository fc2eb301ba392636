//! The project's own tasks; `cargo xtask --help` lists them.

mod alone;
mod cargo;
mod ci;
mod clippy;
mod features;
mod loom;
mod readme;
mod root;
mod step;
mod tidy;
mod totals;
mod wordfreq;

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
    /// Runs the gate: everything that must hold before a change is merged
    ///
    /// The steps run one after the other, each named and timed, until one fails. The last line of
    /// the output says how many tests passed and failed.
    Ci(ci::Options),
    /// Runs the loom models, each in a process of its own, and times them
    ///
    /// Each model has a bound on preemptions with which it takes seconds: the bounded set, which
    /// the gate runs. The deep set raises the bound of all of them.
    Loom(loom::Options),
    /// Checks the house rules that a machine can check
    ///
    /// Prints a line `path:line: what` for each finding, and fails if there is one.
    Tidy,
}

fn main() -> ExitCode {
    let result = match Options::parse().task {
        Task::Ci(options) => return ci::run(&options),
        Task::Loom(options) => loom::run(&options, &mut totals::Totals::default()),
        Task::Tidy => tidy::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }
}
