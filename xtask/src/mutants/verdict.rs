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
    /// Returns the fault, and whether the tests or the list have it.
    fn complaint(&self) -> Option<String> {
        let name = &self.mutant.name;
        match (&self.verdict, &self.mutant.expected) {
            (Verdict::Killed { .. }, Expected::Killed) => None,
            (Verdict::Survived, Expected::Killed) => {
                Some(format!("{name} survives: a test is missing"))
            }
            (Verdict::Survived, _) => None,
            (Verdict::DoesNotBuild, _) => Some(format!("{name} does not build: mend the list")),
            (verdict, _) => Some(format!("{name} is {verdict}: the list's reason is wrong")),
        }
    }
}

/// Returns the table, and below it the reasons of the surviving mutants.
pub(crate) fn table(rows: &[Row<'_>]) -> String {
    let head = ["name", "what it breaks", "result", "time"].map(str::to_owned);
    let cells = rows.iter().map(|row| {
        let time = format!("{:.0} s", row.time.as_secs_f64());
        let Mutant { name, why, .. } = row.mutant;
        [name.clone(), why.clone(), row.verdict.to_string(), time]
    });
    let mut text = aligned(&Vec::from_iter([head].into_iter().chain(cells)));
    for row in rows {
        if let Expected::Equivalent(reason) | Expected::Unshown(reason) = &row.mutant.expected {
            text.push_str(&format!("\n{}: {reason}\n", row.mutant.name));
        }
    }
    text
}

/// Returns a line that counts the results, or a line for each unexpected result.
pub(crate) fn summary(rows: &[Row<'_>]) -> Result<String, String> {
    let complaints: Vec<_> = rows.iter().filter_map(Row::complaint).collect();
    if !complaints.is_empty() {
        return Err(complaints.join("\n"));
    }
    let killed = rows
        .iter()
        .filter(|row| row.mutant.expected == Expected::Killed)
        .count();
    let others = rows.len() - killed;
    Ok(format!(
        "{killed} killed, {others} survive as the list says"
    ))
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

    #[test]
    fn a_verdict_is_held_against_what_the_list_says() {
        let by = "stress::two".to_owned();
        let killed = Verdict::Killed { by, hangs: false };
        for (verdict, expected) in [
            (killed, [true, false, false]),
            (Verdict::Survived, [false, true, true]),
            (Verdict::DoesNotBuild, [false, false, false]),
        ] {
            let lists = ["k\n", "(equivalent)\n      = e", "(unshown)\n      = u"];
            for (list, expected) in lists.into_iter().zip(expected) {
                let (head, reason) = list.split_once('\n').unwrap();
                let text = format!("{head}\n  m @ f: a ~> b -- w\n{reason}");
                let mutant = &parse(&text).unwrap().remove(0);
                let (verdict, time) = (verdict.clone(), Duration::ZERO);
                let row = Row {
                    mutant,
                    verdict,
                    time,
                };
                assert_eq!(summary(&[row]).is_ok(), expected, "{list}");
            }
        }
    }
}
