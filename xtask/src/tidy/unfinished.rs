//! Nothing unfinished, nothing left from debugging.

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
}
