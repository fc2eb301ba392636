//! The gate: its steps in order, a table of their times, the number of tests.

use crate::Failure;
use crate::step::Step;
use crate::totals::Totals;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

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

/// A finished step, as the file has it.
#[derive(Serialize)]
struct Row {
    step: String,
    seconds: f64,
    #[serde(flatten)]
    totals: Totals,
    result: &'static str,
    /// The reason if the step could not check its subject, or why it failed.
    why: Option<String>,
}

/// Runs the steps until a step fails.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if options.list {
        for step in Step::value_variants() {
            println!("{:<12} {}", step.name(), step.what());
        }
        return Ok(());
    }
    let mut rows = Vec::new();
    let mut failed = None;
    for step in chosen(options) {
        let row = run_step(step);
        failed = (row.result == "failed").then(|| row.step.clone());
        rows.push(row);
        // After each step, so that an interrupted run leaves a file with the finished steps.
        if let Some(path) = &options.json {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            fs::write(path, serde_json::to_string_pretty(&record(&rows))? + "\n")?;
        }
        if failed.is_some() {
            break;
        }
    }
    println!("\n{:<12} {:>8}  tests", "step", "time");
    for row in &rows {
        let tests = match (row.result, row.totals) {
            ("unchecked", _) => row.why.clone().unwrap_or_default(),
            (_, totals) if totals == Totals::default() => String::new(),
            (_, totals) => totals.to_string(),
        };
        println!("{:<12} {:>6.1} s  {tests}", row.step, row.seconds);
    }
    let all: f64 = rows.iter().map(|row| row.seconds).sum();
    println!("{:<12} {all:>6.1} s", "all");
    println!("{}", sum(&rows));
    failed.map_or(Ok(()), |name| {
        Err(format!("`{name}` failed; to repeat it: cargo xtask ci --only {name}").into())
    })
}

fn run_step(step: Step) -> Row {
    println!("\n=== {}: {}", step.name(), step.what());
    let start = Instant::now();
    let mut totals = Totals::default();
    let (result, why) = match step.run(&mut totals) {
        Ok(None) => ("passed", None),
        Ok(Some(why)) => ("unchecked", Some(why)),
        Err(failure) => ("failed", Some(format!("error: {failure}"))),
    };
    println!("{}", why.as_deref().unwrap_or_default());
    let seconds = (start.elapsed().as_secs_f64() * 10.0).round() / 10.0;
    Row {
        step: step.name(),
        seconds,
        totals,
        result,
        why,
    }
}

fn chosen(options: &Options) -> Vec<Step> {
    let mut steps = Step::value_variants().to_vec();
    steps.retain(|step| match options.only.is_empty() {
        true => step.is_nightly() == options.nightly,
        false => options.only.contains(step),
    });
    steps
}

/// Returns the number of tests; a test of several steps counts once.
fn sum(rows: &[Row]) -> Totals {
    let ran_all = rows.iter().any(|row| row.step == "test");
    let mut sum = Totals::default();
    for row in rows {
        let again = ran_all && ["alone", "packed", "stress"].contains(&&*row.step);
        sum.passed += if again { 0 } else { row.totals.passed };
        sum.failed += row.totals.failed;
    }
    sum
}

/// Returns all results so far, for programs.
fn record(rows: &[Row]) -> Value {
    let Totals { passed, failed } = sum(rows);
    let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
    json!({ "seconds": seconds, "passed": passed, "failed": failed, "steps": rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::task;

    #[test]
    fn steps_run_in_the_order_of_the_gate_whatever_the_order_asked_for() {
        let chosen = |said: &str| match task(&format!("ci {said}")) {
            crate::Task::Ci(options) => chosen(&options),
            other => panic!("{other:?}"),
        };
        assert_eq!(chosen("--only alone,fmt"), [Step::Fmt, Step::Alone]);
        let all = chosen("").len() + chosen("--nightly").len();
        assert_eq!(all, Step::value_variants().len());
    }

    #[test]
    fn tests_that_two_steps_run_count_once_unless_they_fail() {
        let row = |step: &str, passed, failed| {
            let (result, why) = ("passed", None);
            Row {
                step: step.to_owned(),
                seconds: 0.5,
                totals: Totals { passed, failed },
                result,
                why,
            }
        };
        let rows = [row("alone", 3, 1), row("test", 10, 0), row("loom", 5, 0)];
        assert_eq!(sum(&rows[..1]).to_string(), "3 passed, 1 failed");
        assert_eq!(sum(&rows).to_string(), "15 passed, 1 failed");
        assert_eq!(record(&rows[1..])["steps"][1]["passed"], 5);
    }
}
