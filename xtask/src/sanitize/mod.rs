//! The tests of the lock-free crates under sanitizers, which see errors outside of loom's model:
//! memory freed too early, and the orderings of the compiled code.
//!
//! | | looks for | does not see |
//! |---|---|---|
//! | AddressSanitizer | accesses outside of allocated memory or after its end, leaks | orderings |
//! | ThreadSanitizer | unordered accesses | `atomic::fence`, code that is not instrumented |
//!
//! ThreadSanitizer therefore reports accesses that only a fence orders. Only in an instrumented
//! standard library does the sanitizer see how locks order threads. Besides the sanitizers,
//! `--memcheck` runs a program under valgrind ([`memcheck`]).
//!
//! Where crossbeam-epoch relies on a fence it has a load for ThreadSanitizer, which its build
//! script turns on (`crossbeam_sanitize_thread`). The standard library is instrumented only if it
//! can be built anew, from rust-src. The lists of suppressions in `xtask/sanitize` have the false
//! reports of both causes.

mod memcheck;
mod sanitizer;

use crate::Failure;
use crate::cargo::{Ending, Test};
use crate::loom::chosen;
use crate::totals::Totals;
use sanitizer::{Nightly, Sanitizer, reports, suppressed};
use std::time::Duration;

const NO_SOURCES: &str = "an instrumented standard library: nightly has no rust-src, \
                          `rustup component add rust-src --toolchain nightly`";

/// The crates with code for several threads.
const PACKAGES: &str = "deque nodes mpsc ring os sync proc-api relay sched wait lock channel";

/// For how long a test runs: the longest takes minutes on a busy machine.
const LIMIT: Duration = Duration::from_secs(1_800);

/// A test of resident memory, which means nothing under a sanitizer with memory of its own.
const LEFT_OUT: [&str; 1] =
    ["a_crowd_takes_what_is_promised_handles_every_message_and_leaves_nothing"];

/// Tests that mean nothing under ThreadSanitizer: of steps in the log, because the search for the
/// names of a suppressed report blocks a worker; and of allocations, because crossbeam-epoch
/// allocates for this sanitizer alone.
const LEFT_OUT_OF_THREAD: [&str; 2] = [
    "a_subscriber_that_waits_for_what_a_step_holds_keeps_nobody",
    "messages_of_forty_bytes_are_sent_and_received_without_the_allocator",
];

/// Tests that leave memory on purpose which no suppression can name, since its stack ends in the
/// standard library: of forgotten iterators, parts and replies, and of a failed simulation.
const LEAVES_MEMORY: [&str; 5] = [
    "a_question_says_so_at_once_or_when_its_time_is_over",
    "a_value_is_the_same_when_its_parts_are_joined",
    "a_command_is_dropped_once_though_its_taker_panics_or_forgets_it",
    "commands_whose_iterator_is_forgotten_are_gone",
    "a_blocking_wait_in_a_simulation_says_what_to_call_instead",
];

/// Has AddressSanitizer leave variables on the stack: the scheduler knows how deep it is by their
/// addresses.
const STACK: &str = "detect_stack_use_after_return=0";

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
    /// Returns the options of every sanitizer and each crate, or of the example program under
    /// valgrind.
    pub(crate) fn strict(memcheck: bool) -> Self {
        Self {
            strict: true,
            memcheck,
            ..Self::default()
        }
    }
}

/// Runs all tests that can be run, even if a test fails.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut totals = Totals::default();
    let mut missing = Vec::new();
    if options.memcheck {
        missing.extend(memcheck::run()?.map(|why| format!("memcheck: {why}")));
        totals.count(true);
    } else {
        let (sanitizers, packages) = asked_for(&options.names)?;
        let nightly = Nightly::find().map_err(|why| missing.push(why)).ok();
        for (sanitizer, nightly) in sanitizers.into_iter().zip(nightly.iter().cycle()) {
            let name = sanitizer.name();
            if !nightly.has(sanitizer) {
                missing.push(format!("{name}: nightly has none for {}", nightly.host));
                continue;
            }
            if !nightly.has_sources {
                missing.push(format!("{name}: {NO_SOURCES}"));
            }
            for package in &packages {
                run_package(sanitizer, nightly, package, &mut totals)?;
            }
        }
    }
    for what in &missing {
        println!("could not run: {what}");
    }
    match missing.is_empty() {
        false if options.strict => Err("not everything could be run".into()),
        false if totals.passed + totals.failed == 0 => Ok(()),
        _ => totals.result(),
    }
}

/// Splits the names into sanitizers and packages; without a name of a kind, all of the kind are
/// meant.
fn asked_for(names: &[String]) -> Result<(Vec<Sanitizer>, Vec<String>), Failure> {
    let of = |name: &String| Sanitizer::ALL.into_iter().find(|it| it.name() == name);
    let mut sanitizers: Vec<_> = names.iter().filter_map(of).collect();
    if sanitizers.is_empty() {
        sanitizers.extend(Sanitizer::ALL);
    }
    let crates = names.iter().filter(|name| of(name).is_none());
    let crates: Vec<_> = crates.cloned().collect();
    let packages = PACKAGES.split(' ').map(|name| format!("ganger-{name}"));
    let packages = chosen(&crates, packages.collect(), "shared unsafe code")?;
    Ok((sanitizers, packages))
}

/// Builds a package's tests and runs each in a process of its own: a report is then a test's. A
/// test with a report has failed.
fn run_package(
    sanitizer: Sanitizer,
    nightly: &Nightly,
    package: &str,
    totals: &mut Totals,
) -> Result<(), Failure> {
    let stderr = match sanitizer.build(nightly, package).stderr() {
        Ok(stderr) => stderr,
        Err(failure) => {
            println!("{failure}");
            totals.count(false);
            return Ok(());
        }
    };
    let env = sanitizer.env(nightly)?;
    let name = sanitizer.name();
    let (mut own, mut hidden, mut time) = (Totals::default(), 0, Duration::ZERO);
    for test in Test::list(&stderr, &sanitizer.tree(), package)? {
        let is_one_of = |names: &[&str]| names.iter().any(|name| test.called.ends_with(name));
        let shown = format!("{name} {package} {}", test.called);
        let is_thread = sanitizer == Sanitizer::Thread;
        if is_one_of(&LEFT_OUT) || (is_thread && is_one_of(&LEFT_OUT_OF_THREAD)) {
            println!("left out: {shown}");
            continue;
        }
        let mut env = env.clone();
        if is_one_of(&LEAVES_MEMORY) {
            env.push(("ASAN_OPTIONS", format!("{STACK}:detect_leaks=0")));
        }
        let run = test.run(&env, LIMIT);
        let passed = run.ending == Ending::Passed && reports(&run.text) == 0;
        if !passed {
            println!("{shown}: FAILED\n{}", run.text);
        }
        own.count(passed);
        hidden += suppressed(&run.text);
        time += run.time;
    }
    *totals += own;
    let seconds = time.as_secs_f64();
    println!("{seconds:>7.1} s  {name} {package}: {own}, {hidden} reports suppressed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sanitizers_or_crates() {
        let asked = |names: &str| {
            let names: Vec<_> = names.split_whitespace().map(str::to_owned).collect();
            asked_for(&names)
        };
        let (sanitizers, packages) = asked("").unwrap();
        assert_eq!((sanitizers.len(), packages.len()), (2, 12));
        let (sanitizers, packages) = asked("mpsc thread").unwrap();
        assert_eq!(sanitizers, [Sanitizer::Thread]);
        assert_eq!(packages, ["ganger-mpsc"]);
        assert!(asked("memory").is_err());
    }
}
