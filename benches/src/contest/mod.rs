//! A workload that several queues run in turn, and the lines of its results.

pub(crate) mod cpu;

use crate::stats::{Summary, ratio};
use crate::text::{figure, times};
use std::env;
use std::fmt::Write;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Runs a prepared workload once and returns its figures, a figure for each metric; `NAN` for an
/// unmeasured figure. Allocates its queues itself, unless they are many.
pub type Run = Box<dyn FnMut() -> Vec<f64>>;

/// A workload and its entrants, ready to run.
pub struct Contest {
    /// The name of the workload.
    pub name: String,
    /// The metrics of each entrant, with units.
    pub(crate) metrics: &'static [&'static str],
    pub(crate) entrants: Vec<(&'static str, Run)>,
}

/// The figures of a workload.
#[derive(Debug)]
pub struct Outcome {
    /// The name of the workload.
    pub name: String,
    /// The names of the figures, with units. Of every figure, less is better.
    pub metrics: &'static [&'static str],
    /// The entrants, Ganger's first, and the variants.
    pub rows: Vec<Row>,
}

/// The figures of an entrant.
#[derive(Debug)]
pub struct Row {
    /// The name of the entrant.
    pub name: &'static str,
    /// For each metric the figures of all repetitions, in order.
    pub samples: Vec<Vec<f64>>,
}

impl Contest {
    /// Creates a workload with a name; all others are compared with the first entrant.
    pub fn new(
        name: String,
        metrics: &'static [&'static str],
        entrants: Vec<(&'static str, Run)>,
    ) -> Self {
        Self {
            name,
            metrics,
            entrants,
        }
    }

    /// Adds an entrant, usually for a variant of the workload.
    pub fn and(mut self, name: &'static str, run: Run) -> Self {
        self.entrants.push((name, run));
        self
    }

    /// Lets every entrant run once, so that all are warm, and then `reps` times, in turn within
    /// each repetition.
    ///
    /// # Panics
    /// If an entrant has not done its task, or measured something else.
    pub fn run(mut self, reps: usize) -> Outcome {
        let empty = |name| Row {
            name,
            samples: vec![Vec::with_capacity(reps); self.metrics.len()],
        };
        let mut rows: Vec<Row> = self.entrants.iter().map(|&(name, _)| empty(name)).collect();
        for (_, run) in &mut self.entrants {
            run();
        }
        for rep in 0..reps {
            let _gap = gap(rep);
            for (row, (_, run)) in rows.iter_mut().zip(&mut self.entrants) {
                let figures = run();
                assert_eq!(figures.len(), row.samples.len());
                for (samples, figure) in row.samples.iter_mut().zip(figures) {
                    samples.push(figure);
                }
            }
        }
        Outcome {
            name: self.name,
            metrics: self.metrics,
            rows,
        }
    }
}

/// Moves the memory allocated while the gap exists. The address of a queue can make a processor
/// much slower, and an allocator returns the same address for the same request. With the gap each
/// repetition has another address.
fn gap(rep: usize) -> Vec<u8> {
    const LINE: usize = 64;
    const LINES: usize = 64;
    black_box(Vec::with_capacity(LINE * (1 + 13 * rep % LINES)))
}

/// Returns the nanoseconds for each of `each` operations.
pub(crate) fn nanoseconds(time: Duration, each: u64) -> f64 {
    time.as_nanos() as f64 / each as f64
}

/// Builds a Go program of the folder `foreign`, beside this program; `None` without Go.
pub fn build_go(name: &str) -> Option<PathBuf> {
    let foreign = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign");
    let program = env::current_exe()
        .ok()?
        .with_file_name(format!("ganger-go-{name}"));
    let mut build = Command::new("go");
    let build = build.args(["build", "-o"]).arg(&program);
    let status = build.current_dir(foreign.join(name)).status();
    status.is_ok_and(|it| it.success()).then_some(program)
}

/// Runs a program, and returns its printed numbers.
pub(crate) fn run_go(program: Option<&PathBuf>, args: &[String]) -> Option<Vec<f64>> {
    let output = Command::new(program?).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_whitespace().map(|it| it.parse().ok()).collect()
}

/// The head of a table, for the lines from [`lines`].
pub const HEAD: &str =
    "| workload, unit | who | minimum | median | Ganger's / its |\n|---|---|---|---|---|";

/// Returns a line of a Markdown table for each figure: its minimum and median, and the median of
/// Ganger's figure divided by the figure of the same repetition.
pub fn lines(outcome: &Outcome) -> String {
    let mut text = String::new();
    for (nth, unit) in outcome.metrics.iter().enumerate() {
        let values = |row: &Row| -> Vec<_> {
            let values = row.samples[nth].iter();
            values.map(|&x| Some(x).filter(|x| x.is_finite())).collect()
        };
        for row in &outcome.rows {
            let theirs = values(row);
            let Some(Summary { min, median, .. }) = Summary::of(&theirs) else {
                continue;
            };
            let ratio = ratio(&theirs, &values(&outcome.rows[0]));
            let ratio = ratio.map_or_else(|| "–".to_owned(), |it| times(1.0 / it));
            let (who, min, median) = (row.name, figure(min), figure(median));
            let _ = writeln!(
                text,
                "| {}, {unit} | {who} | {min} | {median} | {ratio} |",
                outcome.name
            );
        }
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Runs each contest once. `excused` is asked for each figure, with the names of its contest
    /// and its metric, whether the figure may fail, and whether it may be zero.
    pub(crate) fn check(contests: Vec<Contest>, excused: impl Fn(&str, &str) -> (bool, bool)) {
        for contest in contests {
            let outcome = contest.run(1);
            for row in &outcome.rows {
                for (metric, samples) in outcome.metrics.iter().zip(&row.samples) {
                    let (may_fail, may_be_zero) = excused(&outcome.name, metric);
                    let is_sound = |&x: &f64| match x {
                        x if x.is_nan() => may_fail,
                        x => x.is_finite() && (x > 0.0 || may_be_zero && x == 0.0),
                    };
                    let what = format!("{}, {}, {metric}: {samples:?}", outcome.name, row.name);
                    assert!(samples.iter().all(is_sound), "{what}");
                }
            }
        }
    }

    #[test]
    fn entrants_take_turns_and_the_first_round_does_not_count() {
        const NAMES: [&str; 3] = ["a", "b", "c"];
        let turns = Rc::new(RefCell::new(Vec::new()));
        let entrant = |name| {
            let turns = Rc::clone(&turns);
            let run: Run = Box::new(move || {
                turns.borrow_mut().push(name);
                vec![f64::from(u32::try_from(turns.borrow().len()).unwrap())]
            });
            (name, run)
        };
        let (variant, run) = entrant(NAMES[2]);
        let others = NAMES[..2].iter().copied().map(entrant).collect();
        let contest = Contest::new("roll".to_owned(), &["turns"], others).and(variant, run);
        let outcome = contest.run(2);
        assert_eq!(*turns.borrow(), [NAMES; 3].concat());
        let samples: Vec<_> = outcome.rows.iter().map(|row| &row.samples[0][..]).collect();
        assert_eq!(samples, [[4.0, 7.0], [5.0, 8.0], [6.0, 9.0]]);
    }

    #[test]
    fn a_line_has_minimum_median_and_ratio() {
        let row = |name, samples: [f64; 3]| Row {
            name,
            samples: vec![samples.to_vec()],
        };
        let outcome = Outcome {
            name: "walk".to_owned(),
            metrics: &["ns"],
            rows: vec![
                row("a", [2.0, 3.0, 10.0]),
                // The pairs: 2/4, 3/12 and 10/100.
                row("b", [4.0, 12.0, 100.0]),
                row("c", [f64::NAN; 3]),
            ],
        };
        assert_eq!(
            lines(&outcome),
            "| walk, ns | a | 2.00 | 3.00 | 1.00× |\n| walk, ns | b | 4.00 | 12.0 | 0.25× |\n"
        );
    }
}
