//! The tests of the lock-free crates under sanitizers, which see errors that loom does not model:
//! memory that is freed too early, and the orderings of the code that is really run.
//!
//! | | looks for | does not see |
//! |---|---|---|
//! | AddressSanitizer | accesses outside of allocated memory or after its end, leaks | orderings |
//! | ThreadSanitizer | unordered accesses | `atomic::fence`, code that is not instrumented |
//!
//! ThreadSanitizer therefore reports accesses that only a fence orders. It sees the order of
//! threads that wait for locks only in an instrumented standard library. Besides the sanitizers,
//! `--memcheck` runs a program under valgrind ([`memcheck`]).
//!
//! Where crossbeam-epoch relies on a fence it has a load for ThreadSanitizer, which its build
//! script turns on (`crossbeam_sanitize_thread`). The standard library is instrumented only if it
//! can be built anew, from rust-src. The lists of suppressions in `xtask/sanitize` have the false
//! reports of both causes.

mod memcheck;
mod nightly;
mod sanitizer;

use crate::Failure;
use crate::cargo::{Ending, Run, Test};
use crate::loom::chosen;
use nightly::Nightly;
use sanitizer::{Sanitizer, reports, suppressed};
use std::time::Duration;

const NO_SOURCES: &str = "with an instrumented standard library: nightly has no rust-src, \
                          `rustup component add rust-src --toolchain nightly`";

/// The crates with code that threads share.
const PACKAGES: [&str; 12] = [
    "ganger-deque",
    "ganger-nodes",
    "ganger-mpsc",
    "ganger-ring",
    "ganger-os",
    "ganger-sync",
    "ganger-proc-api",
    "ganger-relay",
    "ganger-sched",
    "ganger-wait",
    "ganger-lock",
    "ganger-channel",
];

/// For how long a test runs: the longest takes minutes on a busy machine.
const LIMIT: Duration = Duration::from_secs(1_800);

/// Tests of resident memory, which mean nothing under a sanitizer with memory of its own.
const LEFT_OUT: [&str; 1] =
    ["a_crowd_takes_what_is_promised_handles_every_message_and_leaves_nothing"];

/// Tests that leave memory on purpose which no suppression can name, since its stack ends in the
/// standard library: of forgotten iterators, and of a failed simulation.
const LEAVES_MEMORY: [&str; 3] = [
    "a_command_is_dropped_once_though_its_taker_panics_or_forgets_it",
    "commands_whose_iterator_is_forgotten_are_gone",
    "a_blocking_wait_in_a_simulation_says_what_to_call_instead",
];

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Counts tests that could not be run as an error
    #[arg(long)]
    strict: bool,

    /// Runs the example program under valgrind's memcheck instead
    #[arg(long, conflicts_with = "names")]
    memcheck: bool,

    /// `address` or `thread`, and crates, by package or by folder [default: all]
    #[arg(value_name = "SANITIZER|CRATE")]
    names: Vec<String>,
}

impl Options {
    /// Every sanitizer, each crate.
    pub(crate) fn strict() -> Self {
        Self {
            strict: true,
            ..Self::default()
        }
    }

    /// The example program under valgrind.
    pub(crate) fn memcheck() -> Self {
        Self {
            memcheck: true,
            ..Self::strict()
        }
    }
}

/// The result of the tests in a file.
struct Row {
    sanitizer: Sanitizer,
    package: String,
    file: String,
    passed: usize,
    failed: usize,
    reports: usize,
    suppressed: usize,
    time: Duration,
}

/// Runs all tests that can be run, even if a test fails, and prints a table.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if options.memcheck {
        return match memcheck::run()? {
            None => Ok(()),
            Some(reason) => {
                println!("could not run: memcheck: {reason}");
                verdict(&[], 1, options.strict)
            }
        };
    }
    let (sanitizers, packages) = asked_for(&options.names)?;
    let mut missing = Vec::new();
    let mut rows = Vec::new();
    let nightly = Nightly::find();
    for sanitizer in sanitizers {
        let (title, runtime) = (sanitizer.title(), sanitizer.runtime());
        match nightly
            .as_ref()
            .map(|nightly| (nightly, nightly.lacks(title, runtime)))
        {
            Ok((nightly, None)) => {
                for package in &packages {
                    rows.extend(run_package(sanitizer, nightly, package)?);
                }
                if !nightly.has_sources {
                    missing.push((sanitizer, NO_SOURCES.to_owned()));
                }
            }
            Ok((_, Some(reason))) => missing.push((sanitizer, reason)),
            Err(reason) => missing.push((sanitizer, reason.clone())),
        }
    }
    if let Ok(nightly) = nightly {
        println!("\n{}", nightly.version);
    }
    print_table(&rows);
    for (sanitizer, reason) in &missing {
        println!("could not run: {}: {reason}", sanitizer.name());
    }
    verdict(&rows, missing.len(), options.strict)
}

/// Splits the names into sanitizers and packages; without a name of a kind, all of the kind are
/// meant.
fn asked_for(names: &[String]) -> Result<(Vec<Sanitizer>, Vec<String>), Failure> {
    let is_asked_for = |sanitizer: &Sanitizer| names.iter().any(|name| name == sanitizer.name());
    let mut sanitizers: Vec<_> = Sanitizer::ALL.into_iter().filter(is_asked_for).collect();
    if sanitizers.is_empty() {
        sanitizers.extend(Sanitizer::ALL);
    }
    let is_sanitizer = |name: &&String| Sanitizer::ALL.iter().any(|s| s.name() == name.as_str());
    let crates: Vec<_> = names
        .iter()
        .filter(|name| !is_sanitizer(name))
        .cloned()
        .collect();
    let packages = PACKAGES.map(str::to_owned).to_vec();
    Ok((sanitizers, chosen(&crates, packages, "shared unsafe code")?))
}

/// Builds a package's tests and runs each in a process of its own: a report is then a test's.
fn run_package(
    sanitizer: Sanitizer,
    nightly: &Nightly,
    package: &str,
) -> Result<Vec<Row>, Failure> {
    let stderr = match sanitizer.build(nightly, package).stderr() {
        Ok(stderr) => stderr,
        Err(failure) => {
            println!("{failure}");
            let mut row = Row::new(sanitizer, package, "(do not build)");
            row.failed = 1;
            return Ok(vec![row]);
        }
    };
    let env = sanitizer.env(nightly)?;
    let mut rows: Vec<Row> = Vec::new();
    for test in Test::list(&stderr, &sanitizer.tree(), package)? {
        if LEFT_OUT.contains(&test.name.as_str()) {
            println!("left out: {package} {} {}", test.file, test.name);
            continue;
        }
        let mut env = env.clone();
        if LEAVES_MEMORY.contains(&test.name.as_str()) {
            env.push(("ASAN_OPTIONS", "detect_leaks=0".to_owned()));
        }
        let Run { ending, time, text } = test.run(&env, Some(LIMIT));
        let passed = ending == Ending::Passed;
        let found = reports(&text);
        if !passed || found > 0 {
            println!(
                "{} {package} {} {}: FAILED\n{text}",
                sanitizer.name(),
                test.file,
                test.name
            );
        }
        if rows.last().is_none_or(|row| row.file != test.file) {
            rows.push(Row::new(sanitizer, package, &test.file));
        }
        if let Some(row) = rows.last_mut() {
            row.passed += usize::from(passed);
            row.failed += usize::from(!passed);
            row.reports += found;
            row.suppressed += suppressed(&text);
            row.time += time;
        }
    }
    Ok(rows)
}

impl Row {
    fn new(sanitizer: Sanitizer, package: &str, file: &str) -> Self {
        Self {
            sanitizer,
            package: package.to_owned(),
            file: file.to_owned(),
            passed: 0,
            failed: 0,
            reports: 0,
            suppressed: 0,
            time: Duration::ZERO,
        }
    }
}

fn print_table(rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    println!(
        "{:<9} {:<13} {:<17} {:>6} {:>6} {:>7} {:>10} {:>8}",
        "sanitizer", "crate", "tests", "passed", "failed", "reports", "suppressed", "time"
    );
    for row in rows {
        println!(
            "{:<9} {:<13} {:<17} {:>6} {:>6} {:>7} {:>10} {:>6.1} s",
            row.sanitizer.name(),
            row.package,
            row.file,
            row.passed,
            row.failed,
            row.reports,
            row.suppressed,
            row.time.as_secs_f64()
        );
    }
    if rows.iter().any(|row| row.suppressed > 0) {
        println!(
            "suppressed: what only `atomic::fence` or an uninstrumented library orders, which \
             ThreadSanitizer does not see; the lists are in xtask/sanitize"
        );
    }
}

fn verdict(rows: &[Row], missing: usize, strict: bool) -> Result<(), Failure> {
    if rows.is_empty() && missing == 0 {
        return Err("there was no test to run".into());
    }
    let failed: usize = rows.iter().map(|row| row.failed).sum();
    let reports: usize = rows.iter().map(|row| row.reports).sum();
    if failed + reports > 0 {
        return Err(format!("{failed} tests failed, with {reports} reports").into());
    }
    if strict && missing > 0 {
        return Err("not everything could be run".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(failed: usize, reports: usize) -> Row {
        Row {
            failed,
            reports,
            ..Row::new(Sanitizer::Thread, "ganger-deque", "stress")
        }
    }

    #[test]
    fn names_are_sanitizers_or_crates() {
        let asked =
            |names: &[&str]| asked_for(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        let (sanitizers, packages) = asked(&[]).unwrap();
        assert_eq!((sanitizers.len(), packages.len()), (2, PACKAGES.len()));
        let (sanitizers, packages) = asked(&["mpsc", "thread"]).unwrap();
        assert_eq!(sanitizers, [Sanitizer::Thread]);
        assert_eq!(packages, ["ganger-mpsc"]);
        assert!(asked(&["memory"]).is_err());
    }

    #[test]
    fn what_is_left_out_is_there() {
        let file = crate::root::root().join("crates/sched/tests/idle_crowd.rs");
        let text = std::fs::read_to_string(file).unwrap();
        for name in LEFT_OUT {
            assert!(text.contains(&format!("fn {name}(")), "{name}");
        }
    }

    #[test]
    fn a_report_is_an_error_and_what_is_missing_only_if_strict() {
        assert!(verdict(&[row(0, 0)], 1, false).is_ok());
        assert!(verdict(&[row(0, 0)], 0, true).is_ok());
        assert!(verdict(&[row(0, 0)], 1, true).is_err());
        assert!(verdict(&[row(1, 0)], 0, false).is_err());
        assert!(verdict(&[row(0, 0), row(0, 1)], 0, false).is_err());
    }
}
