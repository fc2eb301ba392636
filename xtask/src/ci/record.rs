//! The steps' results, for programs to read.

use super::{Outcome, Row, sum};
use crate::Failure;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Writes all results so far into the file, and makes its folder.
pub(super) fn write(path: &Path, rows: &[Row]) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let text = serde_json::to_string_pretty(&record(rows))?;
    Ok(fs::write(path, text + "\n")?)
}

fn record(rows: &[Row]) -> Value {
    let steps: Vec<Value> = rows.iter().map(step).collect();
    let seconds: f64 = rows.iter().map(|row| row.time.as_secs_f64()).sum();
    let sum = sum(rows);
    json!({
        "seconds": rounded(seconds),
        "passed": sum.passed,
        "failed": sum.failed,
        "steps": steps,
    })
}

fn step(row: &Row) -> Value {
    let (result, why) = match &row.outcome {
        Outcome::Passed => ("passed", None),
        Outcome::Unchecked(why) => ("unchecked", Some(why)),
        Outcome::Failed(why) => ("failed", Some(why)),
    };
    json!({
        "step": row.step.name(),
        "seconds": rounded(row.time.as_secs_f64()),
        "passed": row.totals.passed,
        "failed": row.totals.failed,
        "result": result,
        "why": why,
    })
}

/// To a tenth of a second.
fn rounded(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Step;
    use crate::totals::Totals;
    use std::time::Duration;

    #[test]
    fn a_record_has_each_step_with_its_time_tests_and_result() {
        let row = |step, millis, passed, failed, outcome| Row {
            step,
            time: Duration::from_millis(millis),
            totals: Totals { passed, failed },
            outcome,
        };
        let why = "1 model".to_owned();
        let rows = [
            row(Step::Test, 61_230, 12, 0, Outcome::Passed),
            row(Step::Loom, 1_000, 5, 1, Outcome::Failed(why)),
        ];
        let expected = json!({
            "seconds": 62.2, "passed": 17, "failed": 1,
            "steps": [
                { "step": "test", "seconds": 61.2, "passed": 12, "failed": 0,
                  "result": "passed", "why": null },
                { "step": "loom", "seconds": 1.0, "passed": 5, "failed": 1,
                  "result": "failed", "why": "1 model" },
            ],
        });
        assert_eq!(record(&rows), expected);
    }
}
