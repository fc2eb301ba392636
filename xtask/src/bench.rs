//! The benchmarks, which are programs of a package of their own, because no other package needs
//! their dependencies.
//!
//! Their build takes minutes. So help, the list, and mistakes on the command line are answered
//! without it.

use crate::cargo::Cargo;
use crate::{instructions, program};
use clap::Parser;
use ganger_bench_options::options::{self, list};
use std::ffi::OsString;
use std::fs::File;
use std::process::{Command, ExitCode};

const PROGRAM: &str = "ganger-bench";

/// The exit code for a wrong command line.
const MISUSED: u8 = 2;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The arguments of the benchmarks
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    args: Vec<OsString>,
}

/// Builds all programs, optimised as benchmarks are, and runs the driver. A count of instructions
/// needs none of them, and neither does an answer. Does not return from help, or from a mistake on
/// the command line.
pub(crate) fn run(options: &Options) -> ExitCode {
    if instructions::is_wanted(&options.args) {
        return instructions::run(&options.args);
    }
    let said = parse(&options.args).unwrap_or_else(|answer| answer.exit());
    if said.list {
        print!("{}", list());
        return ExitCode::SUCCESS;
    }
    for path in [&said.from, &said.baseline].into_iter().flatten() {
        if let Err(error) = File::open(path) {
            eprintln!("error: can't read {}: {error}", path.display());
            return ExitCode::from(MISUSED);
        }
    }
    let build = "build --profile bench -p ganger-benches -p ganger-bench-cluster --bins";
    let mimalloc = "--features ganger-benches/mimalloc";
    let features = if said.mimalloc { mimalloc } else { "" };
    if let Err(failure) = Cargo::new(build).args(features).run() {
        eprintln!("error: {failure}");
        return ExitCode::FAILURE;
    }
    // The profile `bench` builds into the folder of `release`.
    let mut command = Command::new(program::path(PROGRAM));
    command.args(&options.args);
    program::become_it(command)
}

/// Parses the benchmarks' options; the error is the answer to a call that needs none of the
/// benchmarks.
fn parse(args: &[OsString]) -> Result<options::Options, clap::Error> {
    let name = OsString::from("bench");
    options::Options::try_parse_from([&name].into_iter().chain(args))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::task;
    use clap::error::ErrorKind;

    #[test]
    fn all_that_is_said_goes_to_the_program_and_answers_need_no_build() {
        let crate::Task::Bench(options) = task("bench --help --only W1 --quick") else {
            panic!("bench is another task");
        };
        assert_eq!(options.args, ["--help", "--only", "W1", "--quick"]);
        let said = |line: &str| parse(&Vec::from_iter(line.split(' ').map(OsString::from)));
        let answer = |line| said(line).unwrap_err().kind();
        assert_eq!(answer("--quick --help"), ErrorKind::DisplayHelp);
        assert_eq!(answer("--only W99"), ErrorKind::ValueValidation);
        assert!(said("--list").unwrap().list);
    }
}
