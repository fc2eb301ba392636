//! Time and chance come from outside: the same scheduler code runs under loom, and under a
//! simulation that a seed repeats.

use super::Finding;
use super::source::Source;

/// The clock module of the scheduler; the time-outs of channels and waits without a scheduler; the
/// length of a yield; the deadlines of sockets, and hyper's; those of a web server, by tokio's
/// clock; the start of a node of a cluster; the numbers of messages that are done once; the wait
/// for another thread's answer to a signal; and the time in the names of files.
const MAY_ASK_THE_CLOCK: [&str; 13] = [
    "crates/again/src/run.rs",
    "crates/sched/src/base/clock.rs",
    "crates/channel/src/block.rs",
    "crates/cluster/src/node/start.rs",
    "crates/mpsc/src/channel/receiver.rs",
    "crates/mpsc/src/channel/room.rs",
    "crates/mpsc/src/channel/yields.rs",
    "crates/net/src/hyper.rs",
    "crates/net/src/reactor/timers.rs",
    "crates/observe/src/dumps/files.rs",
    "crates/tokio/src/serve/activity.rs",
    "crates/wait/src/block.rs",
    "crates/os/src/backtraces/sample.rs",
];

/// A secret is no secret if it is seeded, and values that differ from run to run must not be. These
/// files say themselves what holds in a simulation.
const MAY_BE_RANDOM: [&str; 3] = [
    "crates/again/src/run.rs",
    "crates/sched/src/runtime/hash_key.rs",
    "crates/sched/src/runtime/shared.rs",
];

const CLOCKS: [&str; 2] = ["Instant::now", "SystemTime::now"];
const CHANCE: [&str; 4] = ["thread_rng", "rand::rng", "rand::random", "RandomState"];

pub(super) fn check(source: &Source, findings: &mut Vec<Finding>) {
    // The facade's examples, and programs, are users of the scheduler; soaks are tests of other
    // crates.
    if source
        .product_crate()
        .is_none_or(|name| ["chaos", "ganger", "soak", "soak-sched", "top"].contains(&name))
    {
        return;
    }
    let may_ask = MAY_ASK_THE_CLOCK.contains(&source.path.as_str());
    for (number, line) in source.numbered() {
        for clock in CLOCKS
            .into_iter()
            .filter(|clock| line.has(clock) && !may_ask)
        {
            let what = format!("{clock} outside of the clock module");
            findings.push(Finding::new(source, number, what));
        }
        let has_chance =
            |chance: &&str| line.has(chance) && !MAY_BE_RANDOM.contains(&&*source.path);
        for chance in CHANCE.into_iter().filter(has_chance) {
            let what = format!("{chance} depends on the thread: take a seeded fastrand::Rng");
            findings.push(Finding::new(source, number, what));
        }
        if has_thread_local_fastrand(&line.code) {
            let what = "fastrand's thread-local generator: take a seeded fastrand::Rng";
            findings.push(Finding::new(source, number, what));
        }
    }
}

/// Returns whether the code uses anything of fastrand except a generator with a given seed.
fn has_thread_local_fastrand(code: &str) -> bool {
    const RNG: &str = "Rng";
    code.match_indices("fastrand::").any(|(at, module)| {
        let rest = &code[at + module.len()..];
        match rest.strip_prefix(RNG) {
            Some(rest) => rest.starts_with("::new") || rest.starts_with("::default"),
            None => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    const TEXT: &str = "let a = Instant::now();\nlet b = std::time::SystemTime::now();\n\
                        // Instant::now\nlet c = \"Instant::now\";\nlet d = clock.now();\n";

    #[test]
    fn clocks_are_for_the_clock_module() {
        assert_eq!(
            found(check, "crates/sched/src/worker.rs", TEXT),
            [
                "1: Instant::now outside of the clock module",
                "2: SystemTime::now outside of the clock module",
            ]
        );
        for path in [
            "crates/sched/src/base/clock.rs",
            "crates/sched/tests/a.rs",
            "crates/soak/src/a.rs",
            "crates/soak-sched/src/a.rs",
            "xtask/src/a.rs",
        ] {
            assert!(found(check, path, TEXT).is_empty(), "{path}");
        }
    }

    #[test]
    fn chance_needs_a_seed() {
        let text = "random: fastrand::Rng,\nfastrand::Rng::with_seed(1);\nfastrand::usize(..4);\n\
                    fastrand::Rng::new();\nrand::thread_rng();\nuse fastrand::{shuffle};\n";
        let lines = found(check, "crates/sched/src/base/clock.rs", text);
        let lines: Vec<_> = lines.iter().map(|line| &line[..1]).collect();
        assert_eq!(lines, ["3", "4", "5", "6"]);
    }
}
