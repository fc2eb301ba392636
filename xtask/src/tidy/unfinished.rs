//! Nothing unfinished, nothing left from debugging or from a merge.

use super::Finding;
use super::source::Source;

const MACROS: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];

pub(super) fn check(source: &Source, findings: &mut Vec<Finding>) {
    for (number, line) in source.numbered() {
        for name in MACROS.into_iter().filter(|name| line.has(name)) {
            findings.push(Finding::new(source, number, name));
        }
    }
}

/// The lines with which git marks both sides of a conflict.
const CONFLICTS: [&str; 2] = ["<<<<<<< ", ">>>>>>> "];

/// Checks a document, which would keep both without an error.
pub(super) fn check_document(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (number, line) in (1..).zip(text.lines()) {
        if CONFLICTS.iter().any(|mark| line.starts_with(mark)) {
            findings.push(Finding {
                path: path.to_owned(),
                line: Some(number),
                what: "a conflict of a merge".to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn macros_are_found_and_their_names_are_not() {
        let text = "todo!()\nlet x = dbg!(y);\n// todo!\n\"unimplemented!\"\nnot_todo!()\n";
        assert_eq!(
            found(check, "xtask/src/a.rs", text),
            ["1: todo!", "2: dbg!"]
        );
    }

    #[test]
    fn both_sides_of_a_conflict_are_found() {
        let mut findings = Vec::new();
        let text = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> branch\n";
        check_document("README.md", text, &mut findings);
        let lines: Vec<_> = findings.iter().map(|it| it.line).collect();
        assert_eq!(lines, [Some(1), Some(5)]);
        check_document("README.md", "Title\n=======\n", &mut findings);
        assert_eq!(findings.len(), 2);
    }
}
