//! Folders of a crate are layers: a folder imports only folders before it in the crate's list, so
//! that no circle can close. Files beside the folders are in the same list.

use super::Finding;
use super::arrows::{Crate, File};

/// A crate, and its folders and files from the lowest to the highest. Those of one line do not
/// import each other.
type Layers = (&'static str, &'static [&'static str]);

/// The crates with folders.
const CRATES: [Layers; 22] = [
    ("benches", &BENCHES),
    (
        "cluster",
        &[
            "id linear store",
            "wire",
            "engine session",
            "twin",
            "node",
            "conformance",
        ],
    ),
    ("cluster-direct", &CLUSTER_DIRECT),
    ("link", &LINK),
    ("lock", &LOCK),
    ("model", &MODEL),
    ("mpsc", &["list", "queue", "channel injector"]),
    ("net", &NET),
    ("observe", &OBSERVE),
    ("os", &OS),
    ("proc-api", &PROC_API),
    ("relay", &RELAY),
    ("sched", &SCHED),
    ("soak-sched", &SOAK_SCHED),
    ("supervise", &SUPERVISE),
    ("sync", &SYNC),
    ("task", &TASK),
    ("time", &TIME),
    ("tokio", &["driver in_tokio signal", "serve"]),
    ("top", &TOP),
    ("wait", &WAIT),
    ("xtask", &XTASK),
];

const BENCHES: [&str; 3] = [
    "bin contest",
    "channels deque mailbox timers whole",
    "driver locks queues",
];

const OBSERVE: [&str; 7] = [
    "show",
    "api every letters life observer spans wire",
    "alarms",
    "metrics parts profile trace",
    "recording",
    "recent",
    "dumps endpoint",
];

const CLUSTER_DIRECT: [&str; 6] = [
    "discovery error refusal signal wire",
    "security",
    "link",
    "node",
    "direct",
    "local",
];

const LINK: [&str; 3] = [
    "contain dead_letters functions shrink target watch",
    "end groups links",
    "commands context lookup",
];

const LOCK: [&str; 3] = [
    "blocking mark seat",
    "barrier cancel mutex notify rate_limiter rw_lock semaphore wait_group",
    "deadlock once",
];

const MODEL: [&str; 9] = [
    "ends jobs pid_text plan trees",
    "notes",
    "spec waiting",
    "world",
    "calls counted",
    "far waits",
    "actor",
    "handlers starts",
    "play threads",
];

const NET: [&str; 10] = [
    "error look",
    "poller",
    "world",
    "reactor",
    "sockets",
    "os",
    "commands hyper",
    "net",
    "sim",
    "open",
];

const OS: [&str; 2] = ["linux other pinning sampler", "backtraces no_backtraces"];

const PROC_API: [&str; 6] = [
    "raw",
    "values",
    "commands routing",
    "crossing",
    "events",
    "process",
];

const RELAY: [&str; 4] = [
    "host_address passing table",
    "channels error",
    "inbox node",
    "channel_host router",
];

const SOAK_SCHED: [&str; 12] = [
    "account heap options patience threads threads_off",
    "faults memory parcel watch",
    "commands plan watchdog",
    "actor",
    "sink",
    "site",
    "chaos ending limits quiet",
    "workloads",
    "round",
    "summary",
    "soak",
    "main",
];

const TIME: [&str; 5] = [
    "entry host",
    "shard",
    "shards",
    "timer within",
    "commands every keyed timeouts timers",
];

const SUPERVISE: [&str; 7] = [
    "batch log plan",
    "breaker view",
    "child running",
    "driver",
    "tree",
    "supervisor",
    "pool",
];

const SYNC: [&str; 3] = [
    "atomic burst cell foreign hint model scoped sync thread",
    "driving failing fence parker table try_lock",
    "count lent_parker wait_table",
];

const TASK: [&str; 9] = [
    "error lone name",
    "waits",
    "step",
    "wait",
    "cx",
    "blocking ticks",
    "process",
    "scope",
    "answers",
];

const TOP: [&str; 8] = [
    "text",
    "fault",
    "source",
    "measure save",
    "feed options",
    "app",
    "draw",
    "once screen",
];

const WAIT: [&str; 3] = ["block watch", "until waiter", "queue wake_list"];

const XTASK: [&str; 8] = [
    "totals root",
    "cargo conformance metrics program",
    "cluster_keys instructions loom packed readme tidy wordfreq",
    "alone bench book clippy mutants sanitize",
    "engines features fuzz",
    "soak",
    "step",
    "ci",
];

const SCHED: [&str; 19] = [
    "policy", "base", "reports", "config", "probe", "handlers", "limits", "process", "progress",
    "queues", "runtime", "send", "exits", "turn", "submit", "worker", "blocking", "stop", "api",
];

/// In `sched`, the folder that all folders may import, and through which alone they are watched.
const PROBE: &str = "probe";

/// The only file that names the watching parts: it says what is compiled in.
const ACTIVE: &str = "probe/active";

/// In `sched`, the parts that watch and simulate, which may import all: `simulated` is a worker or
/// a monitor without a thread.
const WATCHING: [&str; 7] = [
    "accounts",
    "check",
    "internals",
    "noop_process",
    "observe",
    "sim",
    "simulated",
];

/// Where the lists are.
const PATH: &str = "xtask/src/tidy/folders.rs";

/// Checks all crates against the lists.
pub(super) fn check(crates: &[Crate<'_>], findings: &mut Vec<Finding>) {
    for it in crates {
        let name = it.name();
        let layers = CRATES.iter().find(|(listed, _)| *listed == name);
        let has_folders = it.files.iter().any(|file| file.name.contains('/'));
        if let Some((_, layers)) = layers {
            against(layers, it, findings);
        } else if has_folders {
            findings.push(Finding {
                path: PATH.to_owned(),
                line: None,
                what: format!("the folders of {name} have no order: add it to `CRATES`"),
            });
        }
    }
}

fn against(layers: &[&str], it: &Crate<'_>, findings: &mut Vec<Finding>) {
    let place = |top: &str| {
        layers
            .iter()
            .position(|layer| layer.split(' ').any(|one| one == top))
    };
    let is_sched = it.name() == "sched";
    let is_free =
        |file: &File<'_>| is_sched && file.name.split('/').any(|part| WATCHING.contains(&part));
    let is_probe = |file: &str| is_sched && top(file) == PROBE;
    for file in &it.files {
        let own = top(file.name);
        if place(own).is_none() && !is_free(file) {
            let what = format!("`{own}` is not in the list of `{PATH}`");
            findings.push(Finding::new(file.source, 1, what));
        }
    }
    for arrow in &it.arrows {
        let (from, to) = (&it.files[arrow.from], &it.files[arrow.to]);
        let (own, other) = (top(from.name), top(to.name));
        if own == other || is_free(from) || is_probe(to.name) || is_sched && from.name == ACTIVE {
            continue;
        }
        let is_below = |own| place(other).is_some_and(|other| other < own);
        if !place(own).is_some_and(is_below) {
            let what = format!("`{own}` must not import `{other}`, which is not below it");
            findings.push(Finding::new(from.source, arrow.line, what));
        }
    }
    for import in &it.from_root {
        let file = &it.files[import.from];
        if !is_free(file) && file.name != ACTIVE {
            let what = format!(
                "`{}` is imported from the root of the crate: import it from its file",
                import.name
            );
            findings.push(Finding::new(file.source, import.line, what));
        }
    }
}

/// Returns the folder, or the file beside the folders, that has the file.
fn top(file: &str) -> &str {
    file.split_once('/').map_or(file, |(top, _)| top)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::arrows::crates;
    use crate::tidy::source::Source;
    use std::collections::BTreeSet;

    const LAYERS: [&str; 4] = ["process", "turn stop", "worker", "probe"];

    /// Returns the findings in a file beside an empty file of each folder, as `line: what`.
    fn found(folder: &str, path: &str, text: &str) -> Vec<String> {
        let tops = ["process", "turn", "stop", "worker", "probe", "check"];
        let mut files = vec![(path.to_owned(), text)];
        files.extend(tops.map(|top| (format!("{top}/empty.rs"), "")));
        files.extend(tops.map(|top| (format!("{top}/mod.rs"), "")));
        let sources: Vec<_> = files
            .iter()
            .map(|(path, text)| Source::parse(&format!("{folder}/src/{path}"), text))
            .collect();
        let crates = crates(&sources[..]);
        let mut findings = Vec::new();
        against(&LAYERS, &crates[0], &mut findings);
        let own = format!("{folder}/src/{path}");
        findings.retain(|finding| finding.path == own);
        findings
            .iter()
            .map(|it| format!("{}: {}", it.line.unwrap(), it.what))
            .collect()
    }

    fn lines(path: &str, text: &str) -> Vec<String> {
        let found = found("crates/sched", path, text).into_iter();
        found.map(|it| it[..1].to_owned()).collect()
    }

    #[test]
    fn each_name_is_in_a_list_once() {
        for (name, layers) in CRATES {
            let names: Vec<_> = layers.iter().flat_map(|layer| layer.split(' ')).collect();
            let set: BTreeSet<_> = names.iter().collect();
            assert_eq!(set.len(), names.len(), "{name}");
        }
    }

    #[test]
    fn an_arrow_that_runs_up_or_beside_is_found_however_it_is_written() {
        let text = "use crate::process::Cell;\nuse crate::worker::Worker;\n\
                    fn f() { crate::worker::g(); }\nuse super::stop::S;\n";
        let up = "`turn` must not import `worker`, which is not below it";
        let beside = "`turn` must not import `stop`, which is not below it";
        let expected = [format!("4: {beside}"), format!("2: {up}")];
        assert_eq!(found("crates/x", "turn/mod.rs", text), expected);
        assert_eq!(
            lines("turn/run.rs", "use super::super::worker::A;\n"),
            ["1"]
        );
        assert!(lines("turn/run.rs", "use super::worker::A;\n").is_empty());
    }

    #[test]
    fn the_probe_is_for_all_and_what_watches_for_the_choice_alone() {
        assert!(lines("process/cell.rs", "use crate::probe::Probe;\n").is_empty());
        let text = "use crate::check::Checker;\n";
        assert_eq!(lines("process/cell.rs", text), ["1"]);
        assert_eq!(lines("probe/other.rs", text), ["1"]);
        assert!(lines("probe/active.rs", text).is_empty());
        assert!(lines("turn/simulated.rs", text).is_empty());
        let other = found("crates/x", "process/cell.rs", "use crate::probe::Probe;\n");
        assert_eq!(other.len(), 1, "other crates have no probe");
    }

    #[test]
    fn what_lies_beside_the_folders_is_found_and_tests_are_left_out() {
        assert_eq!(lines("loose.rs", ""), ["1"]);
        assert!(lines("lib.rs", "mod turn;\nuse crate::worker::Worker;\n").is_empty());
        for path in ["process/tests.rs", "process/tests/a.rs", "models/loom_a.rs"] {
            assert!(lines(path, "use crate::worker::Worker;\n").is_empty());
        }
    }

    #[test]
    fn a_name_of_the_root_is_imported_from_its_file() {
        let found = found("crates/x", "turn/run.rs", "use crate::Cell;\n");
        let what = "`Cell` is imported from the root of the crate: import it from its file";
        assert_eq!(found, [format!("1: {what}")]);
    }
}
