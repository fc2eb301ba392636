//! The gate: its steps in order, a table of their times, the number of tests.

mod quick;

use crate::Failure;
use crate::step::Step;
use crate::totals::Totals;
use clap::ValueEnum;
use quick::Quick;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Runs these steps only, in the order of the list; also steps of the night
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    only: Vec<Step>,

    /// Runs the steps of the night instead of the gate: hours
    #[arg(long, conflicts_with = "only")]
    nightly: bool,

    /// Runs fmt, tidy, clippy and unit tests of the crates that differ from the main branch, and
    /// names the checks left out
    #[arg(long, conflicts_with_all = ["only", "nightly"])]
    quick: bool,

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
    outcome: Outcome,
}

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    /// The reason why the step did not check its subject.
    Unchecked(String),
    /// Why it failed.
    Failed(String),
}

/// Runs the steps until a step fails.
pub(crate) fn run(options: &Options) -> ExitCode {
    if options.list {
        list();
        return ExitCode::SUCCESS;
    }
    let quick = match options.quick.then(Quick::find).transpose() {
        Ok(quick) => quick,
        Err(failure) => {
            eprintln!("error: {failure}");
            return ExitCode::FAILURE;
        }
    };
    let mut rows = Vec::new();
    for step in chosen(options) {
        let row = run_step(step, quick.as_ref());
        let failed = matches!(row.outcome, Outcome::Failed(_));
        rows.push(row);
        // After each step, so that an interrupted run leaves a file with the finished steps.
        if let Some(path) = &options.json
            && let Err(error) = write(path, &rows)
        {
            eprintln!("error: can't write {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
        if failed {
            break;
        }
    }
    print_table(&rows);
    if quick.is_some() {
        println!("{}", quick::LEFT_OUT);
    }
    println!("{}", sum(&rows));
    match rows.last().map(|row| &row.outcome) {
        Some(Outcome::Failed(_)) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

fn run_step(step: Step, quick: Option<&Quick>) -> Row {
    let name = step.name();
    println!("\n=== {name}: {}", step.what());
    let start = Instant::now();
    let mut totals = Totals::default();
    let result: Result<Option<String>, Failure> = match quick {
        Some(quick) => quick.run(step, &mut totals),
        None => step.run(&mut totals),
    };
    let time = start.elapsed();
    let outcome = match result {
        Ok(None) => Outcome::Passed,
        Ok(Some(why)) => {
            println!("{why}");
            Outcome::Unchecked(why)
        }
        Err(failure) => {
            println!("\nerror: {failure}");
            let how = quick.map_or_else(|| format!("--only {name}"), |_| "--quick".to_owned());
            println!("The step `{name}` failed. Repeat it: cargo xtask ci {how}");
            Outcome::Failed(failure.to_string())
        }
    };
    Row {
        step,
        time,
        totals,
        outcome,
    }
}

fn list() {
    for step in Step::value_variants() {
        println!("{:<12} {}", step.name(), step.what());
    }
}

fn chosen(options: &Options) -> Vec<Step> {
    let is_chosen = |step: &Step| {
        if options.quick {
            quick::STEPS.contains(step)
        } else if options.only.is_empty() {
            step.is_nightly() == options.nightly
        } else {
            options.only.contains(step)
        }
    };
    let all = Step::value_variants().iter().copied();
    all.filter(is_chosen).collect()
}

fn print_table(rows: &[Row]) {
    println!("\n{:<12} {:>8}  tests", "step", "time");
    for row in rows {
        println!("{}", line(row));
    }
    let time: Duration = rows.iter().map(|row| row.time).sum();
    println!("{:<12} {:>6.1} s", "all", time.as_secs_f64());
}

/// A row of the table.
fn line(row: &Row) -> String {
    let tests = match &row.outcome {
        Outcome::Unchecked(why) => why.clone(),
        _ if row.totals == Totals::default() => String::new(),
        _ => row.totals.to_string(),
    };
    let time = row.time.as_secs_f64();
    let line = format!("{:<12} {time:>6.1} s  {tests}", row.step.name());
    line.trim_end().to_owned()
}

/// Returns the number of tests; a test of several steps counts once.
fn sum(rows: &[Row]) -> Totals {
    let ran_all = rows.iter().any(|row| row.step == Step::Test);
    let mut sum = Totals::default();
    for row in rows {
        let again = ran_all && matches!(row.step, Step::Alone | Step::Packed | Step::Stress);
        sum += Totals {
            passed: if again { 0 } else { row.totals.passed },
            ..row.totals
        };
    }
    sum
}

/// Writes all results so far into the file, for programs, and makes its folder.
fn write(path: &Path, rows: &[Row]) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let text = serde_json::to_string_pretty(&record(rows))?;
    Ok(fs::write(path, text + "\n")?)
}

fn record(rows: &[Row]) -> Value {
    let rounded = |time: Duration| (time.as_secs_f64() * 10.0).round() / 10.0;
    let steps = rows.iter().map(|row| {
        let (result, why) = match &row.outcome {
            Outcome::Passed => ("passed", None),
            Outcome::Unchecked(why) => ("unchecked", Some(why)),
            Outcome::Failed(why) => ("failed", Some(why)),
        };
        let Totals { passed, failed } = row.totals;
        json!({
            "step": row.step.name(), "seconds": rounded(row.time),
            "passed": passed, "failed": failed, "result": result, "why": why,
        })
    });
    let steps: Vec<Value> = steps.collect();
    let Totals { passed, failed } = sum(rows);
    let seconds = rounded(rows.iter().map(|row| row.time).sum());
    json!({ "seconds": seconds, "passed": passed, "failed": failed, "steps": steps })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn options(said: &[&str]) -> Result<Options, clap::Error> {
        let line = ["cargo xtask", "ci"].iter().chain(said);
        match crate::Options::try_parse_from(line)?.task {
            crate::Task::Ci(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    fn row(step: Step, passed: usize, failed: usize) -> Row {
        Row {
            step,
            time: Duration::ZERO,
            totals: Totals { passed, failed },
            outcome: Outcome::Passed,
        }
    }

    #[test]
    fn steps_run_in_the_order_of_the_gate_whatever_the_order_asked_for() {
        let chosen = |said: &[&str]| chosen(&options(said).unwrap());
        let some = [Step::Fmt, Step::Doc, Step::Alone];
        assert_eq!(chosen(&["--only", "alone,doc,fmt"]), some);
        let (gate, nightly) = (chosen(&[]), chosen(&["--nightly"]));
        assert!(gate.iter().all(|step| !step.is_nightly()));
        assert!(nightly.iter().all(|step| step.is_nightly()));
        assert_eq!(gate.len() + nightly.len(), Step::value_variants().len());
        assert_eq!(chosen(&["--quick"]), quick::STEPS);
        assert!(options(&["--quick", "--nightly"]).is_err());
    }

    #[test]
    fn tests_that_two_steps_run_count_once_unless_they_fail() {
        let mut rows = vec![row(Step::Alone, 3, 0)];
        assert_eq!(sum(&rows).to_string(), "3 passed, 0 failed");
        rows.push(row(Step::Test, 10, 0));
        rows.push(row(Step::Loom, 5, 0));
        assert_eq!(sum(&rows).to_string(), "15 passed, 0 failed");
        rows[0].totals.failed = 1;
        assert_eq!(sum(&rows).to_string(), "15 passed, 1 failed");
    }

    #[test]
    fn a_record_has_each_step_with_its_time_tests_and_result() {
        let mut loom = row(Step::Loom, 5, 1);
        loom.time = Duration::from_millis(61_230);
        loom.outcome = Outcome::Failed("1 model".to_owned());
        let expected = json!({
            "seconds": 61.2, "passed": 5, "failed": 1,
            "steps": [
                { "step": "loom", "seconds": 61.2, "passed": 5, "failed": 1,
                  "result": "failed", "why": "1 model" },
            ],
        });
        assert_eq!(record(&[loom]), expected);
    }
}
