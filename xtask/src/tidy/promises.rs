//! Every promise is pinned by a test that names it: `// pins: P6, P7` above its `#[test]`.

use super::Finding;
use super::source::Source;
use std::collections::BTreeSet;

/// Letter, first and last number.
const PROMISES: [(char, u32, u32); 18] = [
    ('P', 1, 17),
    ('C', 1, 5),
    ('G', 1, 8),
    ('T', 1, 9),
    ('I', 1, 12),
    ('R', 1, 5),
    ('D', 1, 4),
    ('F', 1, 4),
    ('A', 1, 11),
    ('L', 1, 8),
    ('N', 1, 6),
    ('E', 1, 5),
    ('S', 1, 14),
    ('W', 1, 15),
    ('Q', 1, 12),
    ('K', 1, 10),
    ('V', 1, 19),
    ('B', 1, 16),
];

/// Promises that need no test, but may have a test.
const OPTIONAL: [&str; 1] = ["G6"];

pub(super) fn check(sources: &[Source], findings: &mut Vec<Finding>) {
    let mut open: BTreeSet<String> = promises().collect();
    for source in sources
        .iter()
        .filter(|source| source.path.starts_with("crates/"))
    {
        for (number, line) in source.numbered() {
            let Some(ids) = line.comment.trim().strip_prefix("pins:") else {
                continue;
            };
            if !is_on_a_test(source, number) {
                findings.push(Finding::new(source, number, "pins: is not above a #[test]"));
                continue;
            }
            for id in ids.split(',').map(str::trim) {
                if promises().any(|promise| promise == id) {
                    open.remove(id);
                } else {
                    let what = format!("pins: there is no promise {id:?}");
                    findings.push(Finding::new(source, number, what));
                }
            }
        }
    }
    findings.extend(
        open.iter()
            .filter(|id| !OPTIONAL.contains(&id.as_str()))
            .map(|id| {
                let what = format!("no test pins the promise {id}");
                Finding {
                    path: "crates".to_owned(),
                    line: None,
                    what,
                }
            }),
    );
}

fn promises() -> impl Iterator<Item = String> {
    let ids = |(letter, first, last)| (first..=last).map(move |n| format!("{letter}{n}"));
    PROMISES.into_iter().flat_map(ids)
}

/// Returns whether the code after the comment in this line starts with `#[test]`, after other
/// attributes.
fn is_on_a_test(source: &Source, number: usize) -> bool {
    let code = source.lines[number..].iter().map(|line| line.code.trim());
    let mut code = code.filter(|code| !code.is_empty());
    code.find(|code| *code == "#[test]" || !code.starts_with("#[")) == Some("#[test]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check(
            &[Source::parse("crates/sched/tests/a.rs", text)],
            &mut findings,
        );
        findings.iter().map(ToString::to_string).collect()
    }

    fn pin(ids: &[String]) -> String {
        format!(
            "// pins: {}\n#[cfg(unix)]\n#[test]\nfn a() {{}}\n",
            ids.join(", ")
        )
    }

    #[test]
    fn a_test_that_names_all_is_enough() {
        let mut all: Vec<String> = promises().filter(|id| id != "G6").collect();
        assert_eq!(all.len(), 179);
        assert!(findings(&pin(&all)).is_empty());
        all.retain(|id| id != "R4");
        assert_eq!(
            findings(&pin(&all)),
            ["crates: no test pins the promise R4"]
        );
    }

    #[test]
    fn only_promises_can_be_pinned_and_only_by_tests() {
        let all: Vec<String> = promises().collect();
        let text = format!("{}// pins: P18\n#[test]\nfn b() {{}}\n", pin(&all));
        let path = "crates/sched/tests/a.rs";
        assert_eq!(
            findings(&text),
            [format!("{path}:5: pins: there is no promise \"P18\"")]
        );
        let text = format!("{}// pins: P1\nfn b() {{}}\n", pin(&all));
        assert_eq!(
            findings(&text),
            [format!("{path}:5: pins: is not above a #[test]")]
        );
    }
}
