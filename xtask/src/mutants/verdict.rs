//! The results of the mutants, compared with the expected results, and the table of all results.

use super::list::{Expected, Mutant};
use std::fmt;
use std::time::Duration;

/// The tests' result for a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Killed {
        by: String,
        /// The test was ended at its time limit.
        hangs: bool,
    },
    Survived,
    /// The list is wrong: it tells nothing about the tests.
    DoesNotBuild,
}

/// A mutant that was run.
pub(crate) struct Row<'a> {
    pub(crate) mutant: &'a Mutant,
    pub(crate) verdict: Verdict,
    pub(crate) time: Duration,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed { by, hangs: false } => write!(f, "killed by {by}"),
            Self::Killed { by, hangs: true } => write!(f, "killed by {by}, which hangs"),
            Self::Survived => write!(f, "survives"),
            Self::DoesNotBuild => write!(f, "does not build"),
        }
    }
}

impl Row<'_> {
    /// Returns whether the verdict is the expected verdict.
    pub(crate) fn is_expected(&self) -> bool {
        match self.verdict {
            Verdict::Killed { .. } => self.mutant.expected == Expected::Killed,
            Verdict::Survived => self.mutant.expected != Expected::Killed,
            Verdict::DoesNotBuild => false,
        }
    }

    /// Returns the fault, and whether the tests or the list have it.
    fn complaint(&self) -> Option<String> {
        let name = &self.mutant.name;
        let said = match (&self.verdict, &self.mutant.expected) {
            _ if self.is_expected() => return None,
            (Verdict::Killed { .. }, Expected::Equivalent(_)) => "equivalent",
            (Verdict::Killed { .. }, _) => "one that no test can show",
            (Verdict::Survived, _) => {
                return Some(format!("{name} survives: a test is missing"));
            }
            (Verdict::DoesNotBuild, _) => {
                return Some(format!("{name} does not build: mend the list"));
            }
        };
        let verdict = &self.verdict;
        Some(format!(
            "{name} is said to be {said}, and is {verdict}: the reason is wrong"
        ))
    }

    fn killed_by(&self) -> String {
        match (&self.verdict, &self.mutant.expected) {
            (Verdict::Killed { by, hangs: false }, _) => by.clone(),
            (Verdict::Killed { by, hangs: true }, _) => format!("{by} (hangs)"),
            (Verdict::Survived, Expected::Killed) => "SURVIVES".to_owned(),
            (Verdict::Survived, Expected::Equivalent(_)) => "(equivalent)".to_owned(),
            (Verdict::Survived, Expected::Unshown(_)) => "(no test can show it)".to_owned(),
            (Verdict::DoesNotBuild, _) => "DOES NOT BUILD".to_owned(),
        }
    }
}

/// Returns the table, and below it the reasons of the surviving mutants.
pub(crate) fn table(rows: &[Row<'_>]) -> String {
    let head = ["name", "what it breaks", "killed by", "time"].map(str::to_owned);
    let cells = rows.iter().map(|row| {
        [
            row.mutant.name.clone(),
            row.mutant.why.clone(),
            row.killed_by(),
            format!("{:.0} s", row.time.as_secs_f64()),
        ]
    });
    let mut text = aligned(&Vec::from_iter([head].into_iter().chain(cells)));
    let reasons = rows.iter().filter_map(|row| match &row.mutant.expected {
        Expected::Killed => None,
        Expected::Equivalent(reason) => Some((row, "equivalent", reason)),
        Expected::Unshown(reason) => Some((row, "no test can show it", reason)),
    });
    for (row, what, reason) in reasons {
        text.push_str(&format!("\n{} ({what}): {reason}\n", row.mutant.name));
    }
    text
}

/// Returns a line that counts the results, or a line for each unexpected result.
pub(crate) fn summary(rows: &[Row<'_>]) -> Result<String, String> {
    let complaints: Vec<_> = rows.iter().filter_map(Row::complaint).collect();
    if !complaints.is_empty() {
        return Err(complaints.join("\n"));
    }
    let count = |is: fn(&Expected) -> bool| {
        let these = rows.iter().filter(|row| is(&row.mutant.expected));
        these.count()
    };
    let killed = count(|expected| *expected == Expected::Killed);
    let mut text = format!("{killed} of {killed} killed");
    for (count, what) in [
        (
            count(|e| matches!(e, Expected::Equivalent(_))),
            "equivalent as argued",
        ),
        (
            count(|e| matches!(e, Expected::Unshown(_))),
            "that no test can show",
        ),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    Ok(text)
}

/// Lines of cells, each column as wide as its widest cell.
pub(crate) fn aligned<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| {
        let widths = lines.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(widths);
        let padded: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::written::parse;

    fn mutant(expected: &str) -> Mutant {
        let (head, reason) = expected.split_once('=').unwrap_or(("k", ""));
        let reason = if reason.is_empty() {
            String::new()
        } else {
            format!("      = {reason}")
        };
        let text = format!("{head}\n  m @ f: a ~> b -- w\n{reason}");
        parse(&text).unwrap().remove(0)
    }

    fn killed(hangs: bool) -> Verdict {
        let by = "stress::two".to_owned();
        Verdict::Killed { by, hangs }
    }

    const REASONS: [&str; 3] = ["", "(equivalent)=e", "(unshown)=u"];

    #[test]
    fn a_verdict_is_held_against_what_the_list_says() {
        let table = [
            (killed(false), [true, false, false]),
            (killed(true), [true, false, false]),
            (Verdict::Survived, [false, true, true]),
            (Verdict::DoesNotBuild, [false, false, false]),
        ];
        for (verdict, expected) in table {
            for (reason, expected) in REASONS.into_iter().zip(expected) {
                let mutant = &mutant(reason);
                let (verdict, time) = (verdict.clone(), Duration::ZERO);
                let row = Row {
                    mutant,
                    verdict,
                    time,
                };
                assert_eq!(row.is_expected(), expected, "{} {reason}", row.verdict);
                assert_eq!(row.complaint().is_none(), expected);
                assert_eq!(summary(&[row]).is_ok(), expected);
            }
        }
    }

    #[test]
    fn complaints_name_the_mutant_and_what_to_mend() {
        let complaint = |verdict: Verdict, reason: &str| {
            let (mutant, time) = (&mutant(reason), Duration::ZERO);
            let rows = [Row {
                mutant,
                verdict,
                time,
            }];
            summary(&rows).unwrap_err()
        };
        assert_eq!(
            complaint(Verdict::Survived, ""),
            "m survives: a test is missing"
        );
        assert_eq!(
            complaint(Verdict::DoesNotBuild, ""),
            "m does not build: mend the list"
        );
        assert_eq!(
            complaint(killed(false), "(equivalent)=e"),
            "m is said to be equivalent, and is killed by stress::two: the reason is wrong"
        );
    }

    #[test]
    fn the_summary_counts_each_kind() {
        let mutants = ["", "", "(equivalent)=e", "(unshown)=u"].map(mutant);
        let rows: Vec<_> = mutants
            .iter()
            .map(|mutant| Row {
                mutant,
                verdict: match mutant.expected {
                    Expected::Killed => killed(false),
                    _ => Verdict::Survived,
                },
                time: Duration::from_secs(3),
            })
            .collect();
        let text = "2 of 2 killed, 1 equivalent as argued, 1 that no test can show";
        assert_eq!(summary(&rows).unwrap(), text);
        assert_eq!(summary(&rows[..2]).unwrap(), "2 of 2 killed");
        assert_eq!(
            table(&rows[1..3]),
            "name  what it breaks  killed by     time\n\
             m     w               stress::two   3 s\n\
             m     w               (equivalent)  3 s\n\
             \nm (equivalent): e\n"
        );
    }
}
