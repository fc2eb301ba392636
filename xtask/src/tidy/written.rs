//! A document that a task writes is as the task would write it.

use super::Finding;

/// Compares the list of metrics with their table.
pub(super) fn check(document: &str, findings: &mut Vec<Finding>) {
    let should_be = crate::metrics::document();
    let what = "not as the table of metrics says: run `cargo xtask metrics`";
    compare(
        crate::metrics::DOCUMENT,
        what,
        [document, &should_be],
        findings,
    );
}

/// Compares the table of the cluster's cases with the tests.
pub(super) fn check_conformance(document: &str, findings: &mut Vec<Finding>) {
    let path = crate::conformance::DOCUMENT;
    match crate::conformance::document(document) {
        Ok(should_be) => {
            let what = "not as the tests say: run `cargo xtask conformance`";
            compare(path, what, [document, &should_be], findings);
        }
        Err(failure) => findings.push(Finding {
            path: path.to_owned(),
            line: None,
            what: failure.to_string(),
        }),
    }
}

fn compare(path: &str, what: &str, [document, should_be]: [&str; 2], findings: &mut Vec<Finding>) {
    if document == should_be {
        return;
    }
    let lines = document.lines().zip(should_be.lines());
    let same = lines.take_while(|(is, should_be)| is == should_be).count();
    findings.push(Finding {
        path: path.to_owned(),
        line: Some(same + 1),
        what: what.to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_other_line_is_found() {
        let found = |document: &str| {
            let mut findings = Vec::new();
            check(document, &mut findings);
            findings.first().and_then(|it| it.line)
        };
        let document = crate::metrics::document();
        assert_eq!(found(&document), None);
        let lines = document.lines();
        let place = lines.take_while(|it| !it.contains("Steps of processes"));
        let changed = document.replace("Steps of processes", "Steps");
        assert_eq!(found(&changed), Some(place.count() + 1));
        assert_eq!(found(""), Some(1));
    }
}
