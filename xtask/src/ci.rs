//! The gate: its steps in order, a table of their times, the number of tests.

use crate::Failure;
use crate::step::Step;
use crate::totals::Totals;
use clap::ValueEnum;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Runs these steps only, in the order of the list; also steps of the night
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    only: Vec<Step>,

    /// Runs the steps of the night instead of the gate: hours
    #[arg(long, conflicts_with = "only")]
    nightly: bool,

    /// Keeps each step's time, tests and result in this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Lists the steps and their checks, and runs none
    #[arg(long)]
    list: bool,
}

/// A finished step.
struct Row {
    step: Step,
    time: Duration,
    totals: Totals,
    /// The reason if the step could not check its subject, or why it failed.
    outcome: Result<Option<String>, String>,
}

/// Runs the steps until a step fails.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if options.list {
        for step in Step::value_variants() {
            println!("{:<12} {}", step.name(), step.what());
        }
        return Ok(());
    }
    let mut rows: Vec<Row> = Vec::new();
    for step in chosen(options) {
        rows.push(run_step(step));
        // After each step, so that an interrupted run leaves a file with the finished steps.
        if let Some(path) = &options.json {
            write(path, &rows)?;
        }
        if rows.last().is_some_and(|row| row.outcome.is_err()) {
            break;
        }
    }
    println!("\n{:<12} {:>8}  tests", "step", "time");
    for Row {
        step,
        time,
        totals,
        outcome,
    } in &rows
    {
        let tests = match outcome {
            Ok(Some(why)) => why.clone(),
            _ if *totals == Totals::default() => String::new(),
            _ => totals.to_string(),
        };
        println!("{:<12} {:>6.1} s  {tests}", step.name(), time.as_secs_f64());
    }
    println!("{:<12} {:>6.1} s", "all", seconds(&rows));
    println!("{}", sum(&rows));
    match rows.pop() {
        Some(Row {
            step,
            outcome: Err(_),
            ..
        }) => {
            let name = step.name();
            Err(format!("`{name}` failed; to repeat it: cargo xtask ci --only {name}").into())
        }
        _ => Ok(()),
    }
}

fn run_step(step: Step) -> Row {
    println!("\n=== {}: {}", step.name(), step.what());
    let start = Instant::now();
    let mut totals = Totals::default();
    let outcome = step.run(&mut totals).map_err(|failure| failure.to_string());
    match &outcome {
        Ok(None) => {}
        Ok(Some(why)) => println!("{why}"),
        Err(failure) => println!("\nerror: {failure}"),
    }
    let time = start.elapsed();
    Row {
        step,
        time,
        totals,
        outcome,
    }
}

fn chosen(options: &Options) -> Vec<Step> {
    let all = Step::value_variants().iter().copied();
    all.filter(|step| match options.only.is_empty() {
        true => step.is_nightly() == options.nightly,
        false => options.only.contains(step),
    })
    .collect()
}

fn seconds(rows: &[Row]) -> f64 {
    rows.iter().map(|row| row.time.as_secs_f64()).sum()
}

/// Returns the number of tests; a test of several steps counts once.
fn sum(rows: &[Row]) -> Totals {
    let ran_all = rows.iter().any(|row| row.step == Step::Test);
    let mut sum = Totals::default();
    for row in rows {
        let again = ran_all && matches!(row.step, Step::Alone | Step::Packed | Step::Stress);
        sum.passed += if again { 0 } else { row.totals.passed };
        sum.failed += row.totals.failed;
    }
    sum
}

/// Writes all results so far into the file, for programs, and makes its folder.
fn write(path: &Path, rows: &[Row]) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let text = serde_json::to_string_pretty(&record(rows))? + "\n";
    Ok(fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?)
}

fn record(rows: &[Row]) -> Value {
    let rounded = |seconds: f64| (seconds * 10.0).round() / 10.0;
    let steps = rows.iter().map(|row| {
        let (result, why) = match &row.outcome {
            Ok(None) => ("passed", None),
            Ok(Some(why)) => ("unchecked", Some(why)),
            Err(why) => ("failed", Some(why)),
        };
        let Totals { passed, failed } = row.totals;
        json!({
            "step": row.step.name(), "seconds": rounded(row.time.as_secs_f64()),
            "passed": passed, "failed": failed, "result": result, "why": why,
        })
    });
    let steps: Vec<Value> = steps.collect();
    let Totals { passed, failed } = sum(rows);
    let seconds = rounded(seconds(rows));
    json!({ "seconds": seconds, "passed": passed, "failed": failed, "steps": steps })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn row(step: Step, passed: usize, failed: usize) -> Row {
        Row {
            step,
            time: Duration::from_millis(61_230),
            totals: Totals { passed, failed },
            outcome: Err("1 model".to_owned()),
        }
    }

    #[test]
    fn steps_run_in_the_order_of_the_gate_whatever_the_order_asked_for() {
        let chosen = |said: &str| {
            let line = ["cargo xtask", "ci"]
                .into_iter()
                .chain(said.split_whitespace());
            match crate::Options::try_parse_from(line).unwrap().task {
                crate::Task::Ci(options) => chosen(&options),
                other => panic!("{other:?}"),
            }
        };
        let some = [Step::Fmt, Step::Doc, Step::Alone];
        assert_eq!(chosen("--only alone,doc,fmt"), some);
        let all = chosen("").len() + chosen("--nightly").len();
        assert_eq!(all, Step::value_variants().len());
    }

    #[test]
    fn tests_that_two_steps_run_count_once_unless_they_fail() {
        let rows = [
            row(Step::Alone, 3, 1),
            row(Step::Test, 10, 0),
            row(Step::Loom, 5, 0),
        ];
        assert_eq!(sum(&rows[..1]).to_string(), "3 passed, 1 failed");
        assert_eq!(sum(&rows).to_string(), "15 passed, 1 failed");
        let expected = json!({
            "seconds": 61.2, "passed": 5, "failed": 0,
            "steps": [
                { "step": "loom", "seconds": 61.2, "passed": 5, "failed": 0,
                  "result": "failed", "why": "1 model" },
            ],
        });
        assert_eq!(record(&rows[2..]), expected);
    }
}
