//! The permitted dependencies between crates, and tokio, which no crate below the facade may use.

use super::Finding;
use super::source::Source;

/// The folders in `crates`, each with the folders that the crate or its tests may use.
const LAYERS: [(&str, &[&str]); 29] = [
    ("soak", &[]),
    ("sync", &[]),
    ("deque", &["sync", "soak"]),
    ("nodes", &["sync"]),
    ("wait", &["sync", "proc-api"]),
    ("wheel", &[]),
    ("mpsc", &["sync", "nodes", "soak"]),
    ("os", &[]),
    ("ring", &["sync"]),
    ("proc-api", &["sync", "nodes"]),
    ("relay", &["sync", "mpsc", "nodes", "proc-api"]),
    // Its tests use the scheduler.
    ("time", &["sync", "wheel", "proc-api", "sched"]),
    (
        "sched",
        &[
            "time", "sync", "deque", "nodes", "mpsc", "os", "proc-api", "relay", "ring", "wait",
        ],
    ),
    ("task", &["sync", "proc-api", "wait", "sched", "time"]),
    (
        "net",
        &["sync", "wait", "wheel", "proc-api", "sched", "task", "time"],
    ),
    ("tokio", &["proc-api", "sched", "task", "time"]),
    ("keyed", &["sync", "proc-api", "sched", "task", "time"]),
    ("again", &["sync", "proc-api", "sched", "task"]),
    ("link", &["sync", "proc-api", "sched"]),
    (
        "channel",
        &["sync", "proc-api", "wait", "sched", "task", "time"],
    ),
    (
        "lock",
        &["sync", "proc-api", "wait", "sched", "task", "time"],
    ),
    (
        "supervise",
        &["sync", "proc-api", "wait", "sched", "task", "time"],
    ),
    (
        "observe",
        &[
            "ring",
            "sync",
            "proc-api",
            "wait",
            "sched",
            "task",
            "net",
            "link",
            "cluster",
            "lock",
            "supervise",
        ],
    ),
    (
        "cluster",
        &[
            "again", "sync", "proc-api", "relay", "sched", "link", "time",
        ],
    ),
    (
        "cluster-direct",
        &[
            "sync", "proc-api", "wait", "sched", "task", "net", "cluster", "chaos",
        ],
    ),
    // Its tests have an endpoint of their own.
    ("top", &["observe", "ring", "sched", "task"]),
    (
        "ganger",
        &[
            "again",
            "channel",
            "cluster",
            "cluster-direct",
            "deque",
            "keyed",
            "link",
            "lock",
            "mpsc",
            "net",
            "observe",
            "proc-api",
            "relay",
            "sched",
            "supervise",
            "task",
            "time",
            "tokio",
        ],
    ),
    ("soak-sched", &["soak"]),
    ("chaos", &["proc-api", "sched", "cluster"]),
];

/// Crates, each with one that its tests alone may use.
const FOR_TESTS: [(&str, &str); 1] = [("sched", "relay")];

/// Checks the names of crates in code and comments: a forbidden crate need not be mentioned.
pub(super) fn check_source(source: &Source, findings: &mut Vec<Finding>) {
    let Some(forbidden) = forbidden(&source.path) else {
        return;
    };
    let for_tests = FOR_TESTS
        .iter()
        .filter(|(own, _)| source.product_crate() == Some(own));
    let for_tests: Vec<_> = for_tests
        .map(|(_, name)| format!("ganger_{}", name.replace('-', "_")))
        .collect();
    let forbidden: Vec<_> = forbidden.map(|name| name.replace('-', "_")).collect();
    for (number, line) in source.numbered() {
        let mut all = line.clone();
        all.code.push_str(&line.comment);
        // An example in the documentation is a test.
        let in_code = for_tests.iter().filter(|name| line.has(name));
        let anywhere = forbidden.iter().filter(|name| all.has(name));
        for name in anywhere.chain(in_code) {
            let what = format!("this crate knows nothing of {name}");
            findings.push(Finding::new(source, number, what));
        }
    }
}

/// Checks the dependencies of all kinds in a manifest.
pub(super) fn check_manifest(path: &str, manifest: &str, findings: &mut Vec<Finding>) {
    let Some(forbidden) = forbidden(path) else {
        return;
    };
    let forbidden: Vec<_> = forbidden.collect();
    let below_facade = !["crates/ganger/", "crates/tokio/"]
        .iter()
        .any(|it| path.starts_with(it));
    for (line, name) in dependencies(manifest) {
        let is_tokio = name == "tokio" || name.starts_with("tokio-");
        if forbidden.iter().any(|forbidden| forbidden == name) || is_tokio && below_facade {
            let what = format!("this crate must not depend on {name}");
            findings.push(Finding {
                path: path.to_owned(),
                line: Some(line),
                what,
            });
        }
    }
}

/// Returns the packages that the crate of this file may not know; none outside of `crates`.
fn forbidden(path: &str) -> Option<impl Iterator<Item = String> + use<>> {
    let (folder, _) = path.strip_prefix("crates/")?.split_once('/')?;
    let &(own, allowed) = LAYERS.iter().find(|(name, _)| *name == folder)?;
    let others = LAYERS.iter().map(|&(name, _)| name);
    let others = others.filter(move |&name| name != own && !allowed.contains(&name));
    // The facade's name is the project's, too: only a manifest can tell that it is meant.
    Some(
        others
            .filter(|&name| name != "ganger")
            .map(|name| format!("ganger-{name}")),
    )
}

/// The names in the tables of dependencies, with their lines.
fn dependencies(manifest: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_table = false;
    (1..)
        .zip(manifest.lines())
        .filter_map(move |(number, line)| {
            let line = line.trim();
            if let Some(header) = line.strip_prefix('[') {
                let header = header.trim_end_matches(']');
                in_table = header.ends_with("dependencies");
                // `[dependencies.name]`
                let (_, name) = header.rsplit_once("dependencies.")?;
                return Some((number, name));
            }
            let end = line
                .find(['.', '=', ' '])
                .filter(|_| in_table && !line.starts_with('#'))?;
            Some((number, line[..end].trim_matches('"')))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn the_deque_knows_nothing_of_processes() {
        let text = "use ganger_sync::atomic;\nuse ganger_proc_api::Pid;\n\
                    // as ganger_sched does\nuse ganger_deque::Worker;\n";
        assert_eq!(
            found(check_source, "crates/deque/src/a.rs", text),
            [
                "2: this crate knows nothing of ganger_proc_api",
                "3: this crate knows nothing of ganger_sched",
            ]
        );
        assert!(found(check_source, "crates/sched/src/a.rs", text).is_empty());
        assert!(found(check_source, "benches/src/lib.rs", text).is_empty());
    }

    #[test]
    fn the_scheduler_knows_the_relay_in_its_tests_alone() {
        let text = "/// use ganger_relay::Node;\nuse ganger_relay::Node;\n";
        assert_eq!(found(check_source, "crates/sched/src/a.rs", text).len(), 1);
        assert!(found(check_source, "crates/sched/tests/it/a.rs", text).is_empty());
    }

    #[test]
    fn manifests_are_checked_in_every_table() {
        let manifest = "[package]\nname = \"ganger-sched\"\n[dependencies]\n\
                        ganger-sync.workspace = true\n[dev-dependencies]\ntokio = \"1\"\n\
                        [target.\"cfg(ganger_loom)\".dev-dependencies]\n\
                        ganger-sched = { path = \"\" }\n\
                        [dependencies.tokio-util]\nversion = \"1\"\n";
        let lines = |path| {
            let mut findings = Vec::new();
            check_manifest(path, manifest, &mut findings);
            findings
                .into_iter()
                .filter_map(|finding| finding.line)
                .collect::<Vec<_>>()
        };
        assert_eq!(lines("crates/mpsc/Cargo.toml"), [6, 8, 9]);
        assert_eq!(lines("crates/sched/Cargo.toml"), [6, 9]);
        assert_eq!(lines("crates/tokio/Cargo.toml"), [4]);
        assert_eq!(lines("crates/ganger/Cargo.toml"), [4]);
        assert!(lines("benches/Cargo.toml").is_empty());
    }
}
