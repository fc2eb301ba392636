//! Outcomes as text: as they come for people to read, or all together for a README.

use super::contest::{DEQUES, Outcome};
use std::fmt::Write;

/// Prints a deque a line: the minimum and the median of its figures, and how Ganger's compare.
#[derive(Clone, Copy, Debug)]
pub struct Table;

impl Table {
    /// The line above all others.
    #[must_use]
    pub fn head() -> String {
        let title = "workload, unit";
        format!(
            "{title:<56} {:<26} {:>8} {:>8} {:>9} {:>9}\n{:<56} {:<26} {:>8} {:>8} {:>9} {:>9}\n",
            "deque", "min", "median", "ganger/it", "ganger/it", "", "", "", "", "of mins", "median",
        )
    }

    /// The lines of one workload.
    #[must_use]
    pub fn lines(outcome: &Outcome) -> String {
        let mut text = String::new();
        for (metric, unit) in outcome.metrics.iter().enumerate() {
            let mut title = format!("{}, {unit}", outcome.name);
            for row in &outcome.rows {
                let samples = &row.samples[metric];
                let ours = &outcome.rows[0].samples[metric];
                let ratios = [ratio(min(ours), min(samples)), pairwise(ours, samples)];
                let [of_mins, of_pairs] = ratios.map(|ratio| match ratio {
                    Some(ratio) if row.deque != DEQUES[0] => figure(ratio),
                    _ => String::new(),
                });
                let line = format!(
                    "{title:<56} {:<26} {:>8} {:>8} {:>9} {:>9}",
                    row.deque,
                    figure(min(samples)),
                    figure(median(samples.clone())),
                    of_mins,
                    of_pairs,
                );
                let _ = writeln!(text, "{}", line.trim_end());
                title.clear();
            }
        }
        text
    }

    /// A Markdown table, a workload a line and a deque a column: the minimum, and in brackets how many
    /// times that of another deque Ganger's is. A variant has a line of its own.
    #[must_use]
    pub fn markdown(outcomes: &[Outcome]) -> String {
        let others = DEQUES.len() - 1;
        let mut text = String::from("| workload |");
        for deque in DEQUES {
            let _ = write!(text, " {deque} |");
        }
        let _ = writeln!(text, "\n|---|{}", "---|".repeat(DEQUES.len()));
        for outcome in outcomes {
            for (metric, unit) in outcome.metrics.iter().enumerate() {
                let _ = write!(text, "| {}, {unit} |", outcome.name);
                let minima = outcome.rows.iter().map(|row| min(&row.samples[metric]));
                let minima: Vec<f64> = minima.collect();
                let _ = write!(text, " **{}** |", figure(minima[0]));
                for &theirs in &minima[1..DEQUES.len()] {
                    let _ = match ratio(minima[0], theirs) {
                        Some(ratio) => write!(text, " {} ({ratio:.2} x) |", figure(theirs)),
                        None => write!(text, " {} |", figure(theirs)),
                    };
                }
                text.push('\n');
                for (variant, min) in outcome.rows.iter().zip(minima).skip(DEQUES.len()) {
                    let name = format!("{}, {unit}: {}", outcome.name, variant.deque);
                    let _ = writeln!(text, "| {name} | {} |{}", figure(min), " |".repeat(others));
                }
            }
        }
        text
    }
}

fn min(samples: &[f64]) -> f64 {
    samples.iter().copied().fold(f64::NAN, f64::min)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.retain(|x| !x.is_nan());
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    if samples.is_empty() {
        f64::NAN
    } else if samples.len().is_multiple_of(2) {
        f64::midpoint(samples[middle - 1], samples[middle])
    } else {
        samples[middle]
    }
}

/// How many times `theirs` `ours` is, unless there is no telling.
fn ratio(ours: f64, theirs: f64) -> Option<f64> {
    (theirs > 0.0 && !ours.is_nan()).then(|| ours / theirs)
}

/// The median of the ratios within each repetition.
fn pairwise(ours: &[f64], theirs: &[f64]) -> Option<f64> {
    let pairs = ours.iter().zip(theirs);
    let ratios: Vec<f64> = pairs.filter_map(|(&a, &b)| ratio(a, b)).collect();
    (!ratios.is_empty()).then(|| median(ratios))
}

/// Three digits, or all before the point; a dash for what could not be measured.
fn figure(x: f64) -> String {
    match x {
        x if x.is_nan() => "–".to_owned(),
        x if x < 10.0 => format!("{x:.2}"),
        x if x < 100.0 => format!("{x:.1}"),
        x => format!("{x:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deque::Row;

    fn outcome() -> Outcome {
        let row = |deque, samples: &[f64]| Row {
            deque,
            samples: vec![samples.to_vec()],
        };
        Outcome {
            name: "walk".to_owned(),
            metrics: &["ns"],
            rows: vec![
                row(DEQUES[0], &[2.0, 3.0, 10.0]),
                row("b", &[4.0, 12.0, 100.0]),
                row("c", &[0.0, 0.0, 0.0]),
                row("variant", &[1.0, 1.0, 1.0]),
            ],
        }
    }

    #[test]
    fn a_line_has_minimum_median_and_both_ratios() {
        let text = Table::lines(&outcome());
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0], ["walk,", "ns", "ganger-deque", "2.00", "3.00"]);
        // The pairs: 2/4, 3/12 and 10/100.
        assert_eq!(lines[1], ["b", "4.00", "12.0", "0.50", "0.25"]);
        assert_eq!(lines[2], ["c", "0.00", "0.00"]);
    }

    #[test]
    fn markdown_has_a_line_for_a_workload() {
        let text = Table::markdown(&[outcome()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "| workload | ganger-deque | crossbeam-deque | st3 |",
                "|---|---|---|---|",
                "| walk, ns | **2.00** | 4.00 (0.50 x) | 0.00 |",
                "| walk, ns: variant | 1.00 | | |",
            ]
        );
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert!((median(vec![4.0, 1.0, 2.0, 9.0]) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn what_could_not_be_measured_does_not_count() {
        let [x, y] = [[f64::NAN, 3.0, 1.0], [2.0, f64::NAN, 4.0]];
        assert_eq!(
            (figure(min(&x)), figure(median(x.into()))),
            ("1.00".into(), "2.00".into())
        );
        assert_eq!(pairwise(&x, &y), Some(0.25));
        assert_eq!(figure(min(&[f64::NAN])), "–");
        assert_eq!(figure(median(vec![f64::NAN])), "–");
    }
}
