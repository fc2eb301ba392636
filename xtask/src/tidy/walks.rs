//! The three walks in `docs/ARCHITECTURE.md`: the files that a message, a timer and a connection
//! cross.
//!
//! Each file of a walk exists, and no walk is longer than its limit, which may only fall.

use super::Finding;
use std::collections::BTreeSet;

/// Where the walks are.
pub(super) const DOCUMENT: &str = "docs/ARCHITECTURE.md";

/// The section, and the walks in it, each with the most files that it may have.
const SECTION: &str = "## Three walks";
const WALKS: [(&str, usize); 3] = [
    ("### A message, from Address::send to receive", 25),
    ("### A timer, from sleep to the next poll", 19),
    ("### A connection, from accept to the bytes read", 12),
];

/// How much shorter than its limit a walk may be, until the limit is a new number.
const SLACK: usize = 2;

/// Compares the walks with the project's files.
pub(super) fn check(files: &[String], document: &str, findings: &mut Vec<Finding>) {
    against(&WALKS, files, document, findings);
}

fn against(walks: &[(&str, usize)], files: &[String], text: &str, findings: &mut Vec<Finding>) {
    let files: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    let mut found = |line: Option<usize>, what: String| {
        findings.push(Finding {
            path: DOCUMENT.to_owned(),
            line,
            what,
        });
    };
    for &(heading, most) in walks {
        let Some(items) = items(text, heading) else {
            found(None, format!("there is no `{heading}` in `{SECTION}`"));
            continue;
        };
        let mut seen = BTreeSet::new();
        for &(line, path) in &items {
            match path {
                Some(path) if !files.contains(path) => {
                    found(Some(line), format!("there is no file {path}"));
                }
                Some(path) if !seen.insert(path) => {
                    found(Some(line), format!("{path} is in this walk twice"));
                }
                Some(_) => {}
                None => found(Some(line), "expected a path in backticks".to_owned()),
            }
        }
        let count = items.len();
        if count > most {
            found(
                None,
                format!("`{heading}` has {count} files: at most {most}"),
            );
        } else if count + SLACK < most {
            let what = format!("`{heading}` has {count} files: lower its limit of {most}");
            found(None, what);
        }
    }
}

/// Returns the items of a walk, each with its line and path; none if the document has no such walk.
fn items<'a>(text: &'a str, heading: &str) -> Option<Vec<(usize, Option<&'a str>)>> {
    let mut lines = (1..).zip(text.lines());
    lines.find(|(_, line)| *line == SECTION)?;
    let in_section = |(_, line): &(usize, &str)| !line.starts_with("## ");
    let mut lines = lines.take_while(in_section);
    lines.find(|(_, line)| *line == heading)?;
    let walk = lines.take_while(|(_, line)| !line.starts_with('#'));
    let items = walk.filter_map(|(number, line)| Some((number, line.strip_prefix("- ")?)));
    let path = |item: &'a str| Some(item.strip_prefix('`')?.split_once('`')?.0);
    Some(items.map(|(number, item)| (number, path(item))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALK: [(&str, usize); 1] = [("### A walk", 2)];

    fn found(items: &str) -> Vec<String> {
        let text = format!(
            "# x\n\n### A walk\n\n- `no`\n\n{SECTION}\n\n### A walk\n\n{items}\n## y\n- `no`\n"
        );
        let files = ["crates/a/src/b.rs", "crates/a/src/c.rs"].map(str::to_owned);
        let mut findings = Vec::new();
        against(&WALK, &files, &text, &mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_files_of_a_walk_exist() {
        assert!(
            found(
                "- `crates/a/src/b.rs`: first\n- `crates/a/src/c.rs`: next\n\n### Else\n- `no`\n"
            )
            .is_empty()
        );
        let expected = [
            "11: there is no file crates/a/src/d.rs",
            "12: crates/a/src/b.rs is in this walk twice",
        ];
        let expected = expected.map(|what| format!("{DOCUMENT}:{what}"));
        assert_eq!(
            found("- `crates/a/src/d.rs`\n- `crates/a/src/b.rs`\n- `crates/a/src/b.rs`\n")[..1],
            expected[..1]
        );
        assert_eq!(
            found("- `crates/a/src/b.rs`\n- `crates/a/src/b.rs`\n"),
            expected[1..]
        );
        let expected = format!("{DOCUMENT}:11: expected a path in backticks");
        assert_eq!(found("- the sender\n"), [expected]);
    }

    #[test]
    fn a_walk_has_its_limit() {
        let long = "- `crates/a/src/b.rs`\n- `crates/a/src/c.rs`\n- `crates/a/src/c.rs`\n";
        let expected = format!("{DOCUMENT}: `### A walk` has 3 files: at most 2");
        assert_eq!(found(long)[1], expected);
    }

    #[test]
    fn a_limit_falls_with_its_walk() {
        let text = format!("{SECTION}\n### A walk\n- `crates/a`\n");
        let mut findings = Vec::new();
        against(
            &[("### A walk", 4)],
            &["crates/a".to_owned()],
            &text,
            &mut findings,
        );
        assert_eq!(
            findings[0].what,
            "`### A walk` has 1 files: lower its limit of 4"
        );
        findings.clear();
        against(
            &[("### A walk", 3)],
            &["crates/a".to_owned()],
            &text,
            &mut findings,
        );
        against(&[("### A run", 3)], &[], &text, &mut findings);
        let whats: Vec<_> = findings.iter().map(|it| it.what.as_str()).collect();
        assert_eq!(whats, ["there is no `### A run` in `## Three walks`"]);
    }
}
