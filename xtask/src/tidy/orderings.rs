//! Every atomic access names its counterpart, in a comment that starts with `Ordering:`.

use super::Finding;
use super::source::Source;

const ORDERINGS: [&str; 5] = [
    "Ordering::Relaxed",
    "Ordering::Acquire",
    "Ordering::Release",
    "Ordering::AcqRel",
    "Ordering::SeqCst",
];

/// How far above the access the comment may start when statements are between them.
const REACH: usize = 6;

pub(super) fn check(source: &Source, findings: &mut Vec<Finding>) {
    if source.product_crate().is_none() {
        return;
    }
    for (number, line) in source.numbered() {
        let has_access = ORDERINGS.iter().any(|ordering| line.has(ordering));
        if has_access && !is_explained(source, number - 1) {
            let what = "an atomic access without an `// Ordering:` comment";
            findings.push(Finding::new(source, number, what));
        }
    }
}

/// Whether such a comment is in the statement of the line at `index`, or just above.
fn is_explained(source: &Source, index: usize) -> bool {
    let above = &source.lines[..index];
    let ends = |code: &str| code.trim_end().ends_with([';', '{', '}']);
    let statement = above
        .iter()
        .rposition(|line| ends(&line.code))
        .map_or(0, |end| end + 1);
    let start = statement.min(index.saturating_sub(REACH));
    source.lines[start..=index]
        .iter()
        .any(|line| line.comment.trim().starts_with("Ordering:"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    const PATH: &str = "crates/sync/src/a.rs";
    const WHAT: &str = "an atomic access without an `// Ordering:` comment";

    #[test]
    fn a_comment_above_explains() {
        let text = "// Ordering: Relaxed, because.\n// More of it.\nx.load(Ordering::Relaxed);\n";
        assert!(found(check, PATH, text).is_empty());
        assert!(found(check, PATH, "x.load(Ordering::Relaxed); // Ordering: so\n").is_empty());
    }

    #[test]
    fn a_comment_at_the_start_of_a_long_statement_explains() {
        let exchange = "x.compare_exchange(\n  1,\n  2,\n  3,\n  4,\n  5,\n  6,\n  \
                        Ordering::Relaxed,\n);\n";
        let text = format!("y();\n// Ordering: because.\n{exchange}");
        assert!(found(check, PATH, &text).is_empty());
        assert_eq!(found(check, PATH, exchange), [format!("8: {WHAT}")]);
    }

    #[test]
    fn no_comment_and_one_too_far_away_are_found() {
        let far = format!(
            "// Ordering: because.\n{}x.load(Ordering::Acquire);",
            "y();\n".repeat(6)
        );
        assert_eq!(found(check, PATH, &far), [format!("8: {WHAT}")]);
        let no_comment = "// SAFETY: so\nlet a = \"Ordering:\";\nfence(Ordering::SeqCst);";
        assert_eq!(found(check, PATH, no_comment), [format!("3: {WHAT}")]);
    }

    #[test]
    fn other_orderings_and_tests_need_none() {
        assert!(found(check, PATH, "a.cmp(b) == Ordering::Less").is_empty());
        let text = "x.load(Ordering::SeqCst)";
        assert!(found(check, "crates/sync/tests/a.rs", text).is_empty());
    }
}
