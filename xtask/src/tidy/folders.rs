//! Folders of a crate are layers: each has its list of folders that it may import, all of them
//! below it, so that no circle can close.

use super::Finding;
use super::source::Source;

/// A folder, and the folders that it may import.
type Folder = (&'static str, &'static [&'static str]);

/// The crates whose folders are layers, each with its folders from the lowest to the highest.
const CRATES: [(&str, &[Folder]); 7] = [
    ("mpsc", &MPSC),
    ("net", &NET),
    ("proc-api", &PROC_API),
    ("relay", &RELAY),
    ("sched", &SCHED),
    ("supervise", &SUPERVISE),
    ("task", &TASK),
];

const SCHED: [Folder; 16] = [
    ("policy", &[]),
    ("base", &["policy"]),
    ("probe", &["base"]),
    ("handlers", &["base"]),
    ("limits", &["base", "handlers"]),
    ("process", &["base", "handlers", "limits"]),
    ("progress", &["base", "handlers", "limits", "process"]),
    (
        "queues",
        &["base", "handlers", "limits", "process", "progress"],
    ),
    (
        "core",
        &[
            "policy", "base", "handlers", "limits", "process", "progress", "queues",
        ],
    ),
    (
        "send",
        &[
            "base", "handlers", "limits", "process", "progress", "queues", "core",
        ],
    ),
    (
        "exits",
        &[
            "base", "handlers", "limits", "process", "progress", "queues", "core", "send",
        ],
    ),
    (
        "turn",
        &[
            "policy", "base", "handlers", "limits", "process", "progress", "queues", "core",
            "send", "exits",
        ],
    ),
    (
        "worker",
        &[
            "policy", "base", "handlers", "limits", "process", "progress", "queues", "core",
            "send", "exits", "turn",
        ],
    ),
    (
        "blocking",
        &[
            "policy", "base", "handlers", "limits", "process", "progress", "queues", "core",
            "send", "exits", "turn", "worker",
        ],
    ),
    (
        "stop",
        &[
            "base", "handlers", "limits", "process", "progress", "queues", "core", "send", "exits",
            "turn", "worker", "blocking",
        ],
    ),
    (
        "api",
        &[
            "base", "handlers", "limits", "process", "progress", "queues", "core", "send", "exits",
            "turn", "worker", "blocking", "stop",
        ],
    ),
];

const MPSC: [Folder; 4] = [
    ("list", &[]),
    ("queue", &["list"]),
    ("channel", &["list", "queue"]),
    ("injector", &["list", "queue"]),
];

const NET: [Folder; 9] = [
    ("error", &[]),
    ("poller", &["error"]),
    ("world", &["error", "poller"]),
    ("reactor", &["error", "poller", "world"]),
    ("sockets", &["error", "poller", "world", "reactor"]),
    ("os", &["error", "poller", "world", "reactor", "sockets"]),
    (
        "commands",
        &["error", "poller", "world", "reactor", "sockets", "os"],
    ),
    (
        "net",
        &[
            "error", "poller", "world", "reactor", "sockets", "os", "commands",
        ],
    ),
    (
        "sim",
        &[
            "error", "poller", "world", "reactor", "sockets", "os", "commands", "net",
        ],
    ),
];

const PROC_API: [Folder; 6] = [
    ("raw", &[]),
    ("values", &["raw"]),
    ("routing", &["raw", "values"]),
    ("commands", &["raw", "values"]),
    ("events", &["raw", "values", "commands"]),
    ("process", &["raw", "values", "commands", "events"]),
];

const RELAY: [Folder; 10] = [
    ("host_address", &[]),
    ("passing", &[]),
    ("table", &[]),
    ("channels", &["host_address", "passing", "table"]),
    ("empty_host", &["host_address", "passing"]),
    ("error", &["passing"]),
    ("inbox", &["channels"]),
    ("node", &["error", "passing", "table"]),
    (
        "channel_host",
        &[
            "channels",
            "empty_host",
            "error",
            "host_address",
            "inbox",
            "passing",
            "table",
        ],
    ),
    ("router", &["error", "node", "passing", "table"]),
];

const SUPERVISE: [Folder; 10] = [
    ("batch", &[]),
    ("log", &[]),
    ("plan", &[]),
    ("breaker", &["plan"]),
    ("view", &["log", "plan"]),
    ("child", &["log", "plan", "view"]),
    ("driver", &["log", "plan", "view", "child"]),
    ("tree", &["view", "child", "driver"]),
    ("supervisor", &["plan", "view", "child", "driver", "tree"]),
    (
        "pool",
        &[
            "log",
            "plan",
            "view",
            "child",
            "driver",
            "tree",
            "supervisor",
        ],
    ),
];

const TASK: [Folder; 12] = [
    ("error", &[]),
    ("in_tokio", &[]),
    ("name", &[]),
    ("waits", &[]),
    ("step", &["waits"]),
    ("wait", &["error", "waits", "step"]),
    ("cx", &["error", "waits", "step", "wait"]),
    ("blocking", &["error", "cx"]),
    ("ticks", &["error", "wait", "cx"]),
    ("process", &["error", "name", "waits", "step", "cx"]),
    ("scope", &["error", "step", "cx", "process"]),
    ("spawn", &["cx", "process", "scope"]),
];

/// Folders and files that may import all: tests, models, helpers of tests and benchmarks, and the
/// parts that watch and simulate. `simulated` is a worker or a monitor without a thread.
const TESTS: [&str; 8] = [
    "accounts",
    "check",
    "internals",
    "models",
    "sim",
    "simulated",
    "noop_process",
    "tests",
];

/// The folder that all others of a crate may import, and through which alone they are watched.
const PROBE: &str = "probe";

/// The only file that names the watching parts: it says what is compiled in.
const ACTIVE: &str = "probe/active.rs";

/// Checks the imports of a file in such a crate.
pub(super) fn check(source: &Source, findings: &mut Vec<Finding>) {
    for (name, folders) in CRATES {
        let prefix = format!("crates/{name}/src/");
        if let Some(path) = source.path.strip_prefix(&prefix) {
            check_file(source, path, folders, findings);
        }
    }
}

fn check_file(source: &Source, path: &str, folders: &[Folder], findings: &mut Vec<Finding>) {
    let modules = modules(path);
    let Some((&own, _)) = modules.split_first() else {
        return;
    };
    if modules.iter().any(|module| TESTS.contains(module)) {
        return;
    }
    let Some(&(_, allowed)) = folders.iter().find(|(folder, _)| *folder == own) else {
        let what = format!("`{own}` is no folder in the list of `xtask/src/tidy/folders.rs`");
        findings.push(Finding::new(source, 1, what));
        return;
    };
    for (line, other) in imports(source, modules.len()) {
        let is_known = allowed.contains(&&*other) || other == PROBE || path == ACTIVE;
        if other != own && !is_known {
            let what = format!("`{own}` must not import `{other}`: it may import {allowed:?}");
            findings.push(Finding::new(source, line, what));
        }
    }
}

/// Returns the modules around a file, from the root of its crate; none for the root itself.
fn modules(path: &str) -> Vec<&str> {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut modules: Vec<_> = path.split('/').collect();
    if modules.last() == Some(&"mod") || modules == ["lib"] {
        modules.pop();
    }
    modules
}

/// Returns the modules at the root of the crate that a file at this depth names, with the lines.
fn imports(source: &Source, depth: usize) -> Vec<(usize, String)> {
    let tokens = tokens(source);
    let mut imports = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let supers = tokens[at..].chunks(2).take_while(
            |pair| matches!(pair, [word, separator] if word.1 == "super" && separator.1 == "::"),
        );
        let supers = supers.count();
        let is_root = tokens[at].1 == "crate" || supers > 0 && supers == depth;
        let after = at + if supers > 0 { 2 * supers - 1 } else { 1 };
        if is_root && tokens.get(after).is_some_and(|token| token.1 == "::") {
            collect(&tokens[after + 1..], &mut imports);
        }
        at = after;
    }
    imports
}

/// Adds the first names of a path, or of each path of a group.
fn collect(tokens: &[(usize, String)], imports: &mut Vec<(usize, String)>) {
    let is_group = tokens.first().is_some_and(|token| token.1 == "{");
    let mut depth = 0;
    let mut is_first = true;
    for (line, token) in tokens {
        match &**token {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 1 => is_first = true,
            word if is_first && (depth == 1 || !is_group) => {
                imports.push((*line, word.to_owned()));
                is_first = false;
            }
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

/// The words and marks of the code outside of its module of tests, with their lines.
pub(super) fn tokens(source: &Source) -> Vec<(usize, String)> {
    let mut tokens = Vec::new();
    for (number, line) in source.numbered() {
        if line.code.starts_with("mod tests {") {
            break;
        }
        let mut rest = line.code.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let length = if is_part(first) {
                rest.find(|c| !is_part(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push((number, rest[..length].to_owned()));
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const FOLDERS: [Folder; 4] = [
        ("probe", &[]),
        ("process", &[]),
        ("turn", &["process"]),
        ("worker", &["process", "turn"]),
    ];

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let source = Source::parse(path, text);
        let mut findings = Vec::new();
        check_file(&source, path, &FOLDERS, &mut findings);
        findings
            .into_iter()
            .map(|finding| (finding.line.unwrap(), finding.what))
            .collect()
    }

    #[test]
    fn every_list_names_folders_below_alone() {
        for (name, folders) in CRATES {
            let mut below = BTreeSet::new();
            for (folder, allowed) in folders {
                for other in *allowed {
                    assert!(
                        below.contains(other),
                        "{name}: {folder} is not above {other}"
                    );
                }
                assert!(below.insert(folder), "{name}: {folder} is listed twice");
            }
        }
    }

    #[test]
    fn an_arrow_that_runs_up_is_found_however_it_is_written() {
        let text = "use crate::process::Cell;\nuse crate::worker::Worker;\n\
                    fn f() { crate::worker::g(); }\n";
        let lines: Vec<_> = found("turn/run.rs", text).iter().map(|f| f.0).collect();
        assert_eq!(lines, [2, 3]);
        let group = "use crate::{\n    process::{Cell, State},\n    worker::Worker,\n};\n";
        let what = found("turn/mod.rs", group);
        let expected = "`turn` must not import `worker`: it may import [\"process\"]";
        assert_eq!(what, [(3, expected.to_owned())]);
        assert_eq!(
            found("turn/mod.rs", "use super::worker::Worker;\n").len(),
            1
        );
        assert_eq!(
            found("turn/run.rs", "use super::super::worker::A;\n").len(),
            1
        );
        assert!(found("turn/run.rs", "use super::worker::A;\n").is_empty());
    }

    #[test]
    fn the_probe_is_for_all_and_what_watches_for_the_choice_alone() {
        assert!(found("process/cell.rs", "use crate::probe::Probe;\n").is_empty());
        let text = "use crate::check::Checker;\n";
        assert_eq!(found("process/cell.rs", text).len(), 1);
        assert_eq!(found("probe/mod.rs", text).len(), 1);
        assert!(found("probe/active.rs", text).is_empty());
        assert!(found("turn/simulated.rs", text).is_empty());
    }

    #[test]
    fn what_lies_beside_the_folders_is_found_and_tests_are_left_out() {
        assert_eq!(found("loose.rs", "").len(), 1);
        assert!(found("lib.rs", "mod turn;\nuse crate::worker::Worker;\n").is_empty());
        for path in ["process/tests.rs", "process/tests/a.rs", "models/loom_a.rs"] {
            assert!(found(path, "use crate::worker::Worker;\n").is_empty());
        }
        let text = "use crate::turn::A;\n#[cfg(test)]\nmod tests {\n    use crate::turn::A;\n}\n";
        let lines: Vec<_> = found("process/cell.rs", text).iter().map(|f| f.0).collect();
        assert_eq!(lines, [1]);
    }
}
