//! Every file of loom models is in the table of `docs/VERIFICATION.md`, and the table has no other.

use super::Finding;
use std::collections::BTreeSet;

/// Where the table is.
pub(super) const DOCUMENT: &str = "docs/VERIFICATION.md";

/// Compares the project's files with the table's first column.
pub(super) fn check(files: &[String], document: &str, findings: &mut Vec<Finding>) {
    let there: BTreeSet<&str> = files
        .iter()
        .map(String::as_str)
        .filter(|path| is_model(path))
        .collect();
    let rows = document.lines().filter_map(|line| {
        let (path, _) = line.strip_prefix("| `")?.split_once('`')?;
        is_model(path).then_some(path)
    });
    let listed: BTreeSet<&str> = rows.collect();
    let mut found = |path: &str, what: String| {
        findings.push(Finding {
            path: path.to_owned(),
            line: None,
            what,
        });
    };
    for path in there.difference(&listed) {
        found(
            path,
            format!("these models are not in the table of {DOCUMENT}"),
        );
    }
    for path in listed.difference(&there) {
        found(DOCUMENT, format!("there are no models in {path}"));
    }
}

fn is_model(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    path.starts_with("crates/") && name.starts_with("loom_") && name.ends_with(".rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_and_what_is_too_much_is_found() {
        let files = [
            "crates/a/tests/loom_x.rs",
            "crates/a/src/loom_y.rs",
            "crates/a/src/z.rs",
        ];
        let files = files.map(str::to_owned);
        let document = "| `crates/a/tests/loom_x.rs` | x |\n| `crates/a/src/loom_old.rs` | y |\n\
                        | `crates/a/src/z.rs` | z |\n`crates/a/src/loom_y.rs`\n";
        let mut findings = Vec::new();
        check(&files, document, &mut findings);
        let paths: Vec<_> = findings.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["crates/a/src/loom_y.rs", DOCUMENT]);
        assert!(findings[1].what.contains("loom_old.rs"));
    }
}
