//! The gate: its steps in order, a table of what they took, the number of tests.

use crate::step::Step;
use crate::totals::Totals;
use clap::ValueEnum;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Runs these steps only, in the gate's order
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    only: Vec<Step>,

    /// Lists the steps and what they check, and runs none
    #[arg(long)]
    list: bool,
}

/// A step that was run.
struct Row {
    step: Step,
    time: Duration,
    totals: Totals,
    /// Why it did not check what it is for.
    unchecked: Option<String>,
}

/// Runs the steps until one fails.
pub(crate) fn run(options: &Options) -> ExitCode {
    if options.list {
        list();
        return ExitCode::SUCCESS;
    }
    let steps: Vec<Step> = chosen(&options.only).collect();
    let mut rows = Vec::new();
    let mut failed = false;
    for step in steps {
        println!("\n=== {}: {}", step.name(), step.what());
        let start = Instant::now();
        let mut totals = Totals::default();
        let result = step.run(&mut totals);
        let time = start.elapsed();
        let (unchecked, failure) = match result {
            Ok(unchecked) => (unchecked, None),
            Err(failure) => (None, Some(failure)),
        };
        if let Some(why) = &unchecked {
            println!("{why}");
        }
        rows.push(Row {
            step,
            time,
            totals,
            unchecked,
        });
        if let Some(failure) = failure {
            println!("\nerror: {failure}");
            println!(
                "The step `{0}` failed. Repeat it: cargo xtask ci --only {0}",
                step.name()
            );
            failed = true;
            break;
        }
    }
    print_table(&rows);
    println!("{}", sum(&rows));
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn list() {
    for step in chosen(&[]) {
        println!("{:<12} {}", step.name(), step.what());
    }
}

fn chosen(only: &[Step]) -> impl Iterator<Item = Step> {
    let all = Step::value_variants().iter().copied();
    all.filter(|step| only.is_empty() || only.contains(step))
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
    let tests = match &row.unchecked {
        Some(why) => why.clone(),
        None if row.totals.is_zero() => String::new(),
        None => row.totals.to_string(),
    };
    let time = row.time.as_secs_f64();
    let line = format!("{:<12} {time:>6.1} s  {tests}", row.step.name());
    line.trim_end().to_owned()
}

/// The number of tests, with those that two steps run counted once.
fn sum(rows: &[Row]) -> Totals {
    let ran_all = rows.iter().any(|row| row.step == Step::Test);
    let mut sum = Totals::default();
    for row in rows {
        let passed = if ran_all && row.step == Step::Alone {
            0
        } else {
            row.totals.passed
        };
        sum += Totals {
            passed,
            ..row.totals
        };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(step: Step, passed: usize, failed: usize) -> Row {
        Row {
            step,
            time: Duration::ZERO,
            totals: Totals { passed, failed },
            unchecked: None,
        }
    }

    #[test]
    fn the_table_says_why_a_step_did_not_check() {
        let mut row = row(Step::Instructions, 0, 0);
        assert_eq!(line(&row), "instructions    0.0 s");
        row.unchecked = Some("not counted: there is no valgrind".to_owned());
        assert_eq!(
            line(&row),
            "instructions    0.0 s  not counted: there is no valgrind"
        );
    }

    #[test]
    fn steps_run_in_the_order_of_the_gate_whatever_the_order_asked_for() {
        let steps: Vec<_> = chosen(&[Step::Doc, Step::Fmt]).collect();
        assert_eq!(steps, [Step::Fmt, Step::Doc]);
        assert_eq!(chosen(&[]).count(), Step::value_variants().len());
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
}
