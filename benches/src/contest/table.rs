//! Outcomes as text: as they come for people to read, or all together for a README.

use super::Outcome;
use std::fmt::Write;

/// Prints an entrant a line: the minimum and the median of its figures, and how Ganger's compare.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The entrants with a column of their own in Markdown; all others are variants. The first is
    /// Ganger's, and the first of every outcome.
    pub columns: &'static [&'static str],
}

impl Table {
    /// Returns the line above all other lines.
    #[must_use]
    pub fn head() -> String {
        let title = "workload, unit";
        format!(
            "{title:<56} {:<26} {:>8} {:>8} {:>9} {:>9}\n{:<56} {:<26} {:>8} {:>8} {:>9} {:>9}\n",
            "queue", "min", "median", "ganger/it", "ganger/it", "", "", "", "", "of mins", "median",
        )
    }

    /// Returns the lines of a workload.
    #[must_use]
    pub fn lines(&self, outcome: &Outcome) -> String {
        let mut text = String::new();
        for (metric, unit) in outcome.metrics.iter().enumerate() {
            let mut title = format!("{}, {unit}", outcome.name);
            for row in &outcome.rows {
                let samples = &row.samples[metric];
                let ours = &outcome.rows[0].samples[metric];
                let ratios = [ratio(min(ours), min(samples)), pairwise(ours, samples)];
                let [of_mins, of_pairs] = ratios.map(|ratio| match ratio {
                    Some(ratio) if row.name != self.columns[0] => figure(ratio),
                    _ => String::new(),
                });
                let line = format!(
                    "{title:<56} {:<26} {:>8} {:>8} {:>9} {:>9}",
                    row.name,
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

    /// Returns a Markdown table, a workload a line and an entrant a column. A cell has the minimum
    /// and, in brackets, Ganger's minimum divided by it. The best is bold, if it has competitors. A
    /// variant has a line of its own, with its figure in Ganger's place.
    #[must_use]
    pub fn markdown(&self, outcomes: &[Outcome]) -> String {
        let mut text = String::from("| workload |");
        for name in self.columns {
            let _ = write!(text, " {name} |");
        }
        let _ = writeln!(text, "\n|---|{}", "---|".repeat(self.columns.len()));
        for outcome in outcomes {
            for (metric, unit) in outcome.metrics.iter().enumerate() {
                let title = format!("{}, {unit}", outcome.name);
                let of = |name: &str| {
                    let row = outcome.rows.iter().find(|row| row.name == name);
                    row.map_or(f64::NAN, |row| min(&row.samples[metric]))
                };
                let _ = writeln!(text, "| {title} |{}", self.cells(of));
                for row in &outcome.rows {
                    if !self.columns.contains(&row.name) {
                        let variant = min(&row.samples[metric]);
                        let of = |name: &str| {
                            let is_ours = name == self.columns[0];
                            if is_ours { variant } else { of(name) }
                        };
                        let _ = writeln!(text, "| {title}: {} |{}", row.name, self.cells(of));
                    }
                }
            }
        }
        text
    }

    /// Returns the cells of a line, given the minimum of each entrant.
    fn cells(&self, min_of: impl Fn(&str) -> f64) -> String {
        let minima: Vec<f64> = self.columns.iter().map(|name| min_of(name)).collect();
        let (ours, best) = (minima[0], min(&minima));
        let is_contested = minima.iter().filter(|x| !x.is_nan()).count() > 1;
        let mut text = String::new();
        for (nth, &theirs) in minima.iter().enumerate() {
            // Figures that print the same are equally good.
            let _ = if is_contested && figure(theirs) == figure(best) {
                write!(text, " **{}**", figure(theirs))
            } else {
                write!(text, " {}", figure(theirs))
            };
            if let Some(ratio) = ratio(ours, theirs).filter(|_| nth > 0) {
                let _ = write!(text, " ({ratio:.2} x)");
            }
            text.push_str(" |");
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

/// Returns the ratio of `ours` to `theirs`, if known.
fn ratio(ours: f64, theirs: f64) -> Option<f64> {
    (theirs > 0.0 && !ours.is_nan()).then(|| ours / theirs)
}

/// The median of the ratios within each repetition.
fn pairwise(ours: &[f64], theirs: &[f64]) -> Option<f64> {
    let pairs = ours.iter().zip(theirs);
    let ratios: Vec<f64> = pairs.filter_map(|(&a, &b)| ratio(a, b)).collect();
    (!ratios.is_empty()).then(|| median(ratios))
}

/// Formats three digits, or all before the point; a dash for an unmeasured figure.
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
    use crate::contest::Row;

    const TABLE: Table = Table {
        columns: &["a", "b", "c", "d"],
    };

    fn outcome() -> Outcome {
        let row = |name, samples: &[f64]| Row {
            name,
            samples: vec![samples.to_vec()],
        };
        Outcome {
            name: "walk".to_owned(),
            metrics: &["ns"],
            rows: vec![
                row("a", &[2.0, 3.0, 10.0]),
                row("b", &[4.0, 12.0, 100.0]),
                row("c", &[0.0, 0.0, 0.0]),
                row("variant", &[1.0, 1.0, 1.0]),
            ],
        }
    }

    #[test]
    fn a_line_has_minimum_median_and_both_ratios() {
        let text = TABLE.lines(&outcome());
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0], ["walk,", "ns", "a", "2.00", "3.00"]);
        // The pairs: 2/4, 3/12 and 10/100.
        assert_eq!(lines[1], ["b", "4.00", "12.0", "0.50", "0.25"]);
        assert_eq!(lines[2], ["c", "0.00", "0.00"]);
    }

    #[test]
    fn markdown_has_a_line_for_a_workload_and_one_for_a_variant() {
        let text = TABLE.markdown(&[outcome()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "| workload | a | b | c | d |",
                "|---|---|---|---|---|",
                "| walk, ns | 2.00 | 4.00 (0.50 x) | **0.00** | – |",
                "| walk, ns: variant | 1.00 | 4.00 (0.25 x) | **0.00** | – |",
            ]
        );
    }

    #[test]
    fn the_best_is_bold_whoever_it_is_and_only_the_best() {
        let cells = |minima: [f64; 4]| {
            let nth = |name: &str| TABLE.columns.iter().position(|&column| column == name);
            TABLE.cells(|name| minima[nth(name).unwrap()])
        };
        let nan = f64::NAN;
        assert_eq!(
            cells([2.0, 4.0, nan, 8.0]),
            " **2.00** | 4.00 (0.50 x) | – | 8.00 (0.25 x) |"
        );
        assert_eq!(
            cells([4.0, 2.0, 2.001, 8.0]),
            " 4.00 | **2.00** (2.00 x) | **2.00** (2.00 x) | 8.00 (0.50 x) |"
        );
        assert_eq!(cells([1.0, nan, nan, nan]), " 1.00 | – | – | – |");
        assert_eq!(cells([nan; 4]), " – | – | – | – |");
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
