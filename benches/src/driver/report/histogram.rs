//! The spread of latencies: a strip for each peer with a histogram, over a common logarithmic axis
//! of time.

use super::markup::Escaped;
use super::view::Row;
use crate::driver::lines::Figure;
use crate::driver::text::figure;
use std::fmt::Write;

const WIDTH: f64 = 420.0;
const STRIP: f64 = 54.0;
const LEFT: f64 = 8.0;
const RIGHT: f64 = 8.0;
const AXIS: f64 = 24.0;
/// How many columns the axis has: buckets of any width are put into them.
const COLUMNS: usize = 70;

/// The strips of a row; none without latencies.
pub(super) fn histogram(row: &Row<'_>) -> Option<String> {
    let figures: Vec<&Figure> = row.figures().filter(|f| !f.histogram.is_empty()).collect();
    let bounds = || {
        figures
            .iter()
            .flat_map(|f| f.histogram.iter().map(|&(upper, _)| upper))
    };
    let least = (bounds().min()? as f64 / 1.5).max(1.0);
    let most = (bounds().max()? as f64).max(10.0 * least);
    let part = |nanoseconds: f64| {
        ((nanoseconds.max(least) / least).ln() / (most / least).ln()).clamp(0.0, 1.0)
    };
    let place = |nanoseconds: f64| LEFT + part(nanoseconds) * (WIDTH - LEFT - RIGHT);
    let height = STRIP * figures.len() as f64 + AXIS;
    let title = row.id.spec().name;
    let mut text = format!(
        "<figure class=\"card\"><figcaption>{} {title}: how often which latency</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">",
        row.id,
    );
    let nanos = nanoseconds_of(row.unit);
    for (nth, shown) in figures.iter().enumerate() {
        let bottom = STRIP * (nth + 1) as f64;
        strip(&mut text, shown, bottom, part);
        let marks = [("p50", shown.p50), ("p99", shown.p99)];
        for (name, at) in marks {
            let Some(at) = at else { continue };
            let x = place(at * nanos);
            let _ = write!(
                text,
                "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\">\
                 <title>{name}: {} {}</title></line>",
                bottom - STRIP + 20.0,
                figure(at),
                Escaped(row.unit),
            );
        }
        let said = |at: Option<f64>| at.map_or_else(|| "–".to_owned(), figure);
        let _ = write!(
            text,
            "<text class=\"strip\" x=\"{LEFT}\" y=\"{:.1}\">{}: p50 {}, p99 {}, max {} {}</text>",
            bottom - STRIP + 13.0,
            shown.peer,
            said(shown.p50),
            said(shown.p99),
            said(shown.worst),
            Escaped(row.unit),
        );
    }
    for tick in ticks(least, most) {
        let _ = write!(
            text,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            place(tick).clamp(LEFT + 16.0, WIDTH - RIGHT - 16.0),
            height - 6.0,
            time(tick),
        );
    }
    text.push_str("</svg></figure>\n");
    Some(text)
}

/// Draws the columns of a strip, with heights relative to the most frequent.
fn strip(text: &mut String, shown: &Figure, bottom: f64, part: impl Fn(f64) -> f64) {
    let mut columns = [0; COLUMNS];
    for &(upper, count) in &shown.histogram {
        columns[column(part(upper as f64))] += count;
    }
    let most = columns.iter().copied().max().unwrap_or(1).max(1);
    let width = (WIDTH - LEFT - RIGHT) / COLUMNS as f64;
    let class = super::curves::class(shown.peer);
    let _ = write!(text, "<g class=\"columns {class}\">");
    for (nth, &count) in columns.iter().enumerate().filter(|(_, count)| **count > 0) {
        // Even a single latency is visible.
        let height = ((STRIP - 20.0) * count as f64 / most as f64).max(1.5);
        let _ = write!(
            text,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
            LEFT + nth as f64 * width,
            bottom - height,
            width - 0.6,
        );
    }
    text.push_str("</g>");
}

/// Where a part of the axis is.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a float that is too large becomes the largest"
)]
fn column(part: f64) -> usize {
    let column = (part * (COLUMNS - 1) as f64).round() as usize;
    column.min(COLUMNS - 1)
}

/// Returns powers of ten, with steps in between if they alone would be too few.
fn ticks(least: f64, most: f64) -> Vec<f64> {
    let steps: &[f64] = if most / least > 1e3 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let mut ticks = Vec::new();
    let mut decade = 10_f64.powf(least.log10().floor());
    while decade <= most {
        let of_it = steps.iter().map(|step| (step * decade).round());
        ticks.extend(of_it.filter(|tick| (least..=most).contains(tick)));
        decade *= 10.0;
    }
    ticks
}

fn nanoseconds_of(unit: &str) -> f64 {
    match unit {
        "us" => 1e3,
        "ms" => 1e6,
        _ => 1.0,
    }
}

/// A time as short as an axis needs it.
fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        t if t < 1e3 => format!("{t:.0} ns"),
        t if t < 1e6 => format!("{:.0} us", t / 1e3),
        t if t < 1e9 => format!("{:.0} ms", t / 1e6),
        t => format!("{:.0} s", t / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::fixture;
    use crate::driver::report::markup::unbalanced;
    use crate::driver::report::view::View;
    use crate::whole::catalog::Id;

    #[test]
    fn there_is_a_strip_for_each_that_has_latencies() {
        let results = fixture::results();
        let view = View::of(&results);
        let row = view.rows_of(Id::W10).next().unwrap();
        let text = histogram(row).unwrap();
        assert_eq!(unbalanced(&text), None);
        assert_eq!(
            text.matches("class=\"columns").count(),
            row.figures().count()
        );
        assert_eq!(
            text.matches("class=\"mark\"").count(),
            2 * row.figures().count()
        );
        assert!(text.contains("10 us") && text.contains("100 us"), "{text}");
        assert!(histogram(view.rows_of(Id::W1).next().unwrap()).is_none());
    }

    #[test]
    fn a_short_axis_has_more_ticks_in_a_decade() {
        assert_eq!(ticks(3_000.0, 60_000.0), [5e3, 1e4, 2e4, 5e4]);
        assert_eq!(ticks(3_000.0, 6e7), [1e4, 1e5, 1e6, 1e7]);
    }

    #[test]
    fn every_sample_is_in_a_column() {
        let results = fixture::results();
        let view = View::of(&results);
        let shown = view.rows_of(Id::W10).next().unwrap().ours.unwrap();
        let mut text = String::new();
        strip(&mut text, shown, STRIP, |_| 1.0);
        assert_eq!(text.matches("<rect").count(), 1);
    }
}
