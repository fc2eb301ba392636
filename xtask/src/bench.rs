//! The benchmarks, which are programs of a package of their own: nobody else builds what they need.

use crate::cargo::Cargo;
use crate::{instructions, program};
use std::ffi::OsString;
use std::process::{Command, ExitCode};

const PACKAGE: &str = "ganger-benches";
const PROGRAM: &str = "ganger-bench";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// What the benchmarks are told
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    args: Vec<OsString>,
}

/// Builds all programs, optimised as benchmarks are, and runs the one that runs the others. Counting
/// instructions needs none of them.
pub(crate) fn run(options: &Options) -> ExitCode {
    if instructions::is_wanted(&options.args) {
        return instructions::run(&options.args);
    }
    let build = Cargo::new(["build", "--profile", "bench", "-p", PACKAGE, "--bins"]);
    let features = features(&options.args);
    if let Err(failure) = build.args(features.iter().copied()).run() {
        eprintln!("error: {failure}");
        return ExitCode::FAILURE;
    }
    // The folder of the profile `bench` is that of `release`.
    let mut command = Command::new(program::path(PROGRAM));
    command.args(&options.args);
    program::become_it(command)
}

/// What the build needs of what the benchmarks are told.
fn features(args: &[OsString]) -> &'static [&'static str] {
    match args.iter().any(|arg| arg == "--mimalloc") {
        true => &["--features", "mimalloc"],
        false => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::features;
    use crate::root::root;
    use clap::Parser;
    use std::fs;

    #[test]
    fn all_that_is_said_goes_to_the_program() {
        let said = ["--help", "--only", "W1", "--quick"];
        let line = ["cargo xtask", "bench"].into_iter().chain(said);
        let options = crate::Options::try_parse_from(line).unwrap();
        let crate::Task::Bench(options) = options.task else {
            panic!("{options:?}");
        };
        assert_eq!(options.args, said);
    }

    #[test]
    fn another_allocator_is_built_in() {
        assert!(features(&["--quick".into()]).is_empty());
        let features = features(&["--quick".into(), "--mimalloc".into()]);
        assert_eq!(features, ["--features", "mimalloc"]);
    }

    #[test]
    fn the_program_is_one_of_the_package() {
        let source = format!("benches/src/bin/{}.rs", super::PROGRAM);
        assert!(root().join(source).is_file());
        let manifest = fs::read_to_string(root().join("benches/Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("name = \"{}\"", super::PACKAGE)));
        assert!(manifest.contains(&format!("name = \"{}\"", super::PROGRAM)));
    }
}
