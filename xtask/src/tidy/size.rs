//! A single idea a file: a long file has two.

use super::Finding;
use super::source::Source;

const MAX_LINES: usize = 600;

pub(super) fn check(source: &Source, findings: &mut Vec<Finding>) {
    let lines = source.lines.len();
    if lines > MAX_LINES {
        let what = format!("{lines} lines; at most {MAX_LINES}: one idea a file");
        findings.push(Finding::new(source, MAX_LINES + 1, what));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    #[test]
    fn the_limit_is_exact() {
        let path = "benches/src/a.rs";
        assert!(found(check, path, &"\n".repeat(MAX_LINES)).is_empty());
        let found = found(check, path, &"\n".repeat(MAX_LINES + 1));
        assert_eq!(found, ["601: 601 lines; at most 600: one idea a file"]);
    }
}
