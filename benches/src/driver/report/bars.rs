//! A bar for each peer with a figure: its length is the minimum, a line from the minimum to the
//! maximum is the spread, and a tick on it is the median.

use super::markup::Escaped;
use super::view::Row;
use crate::driver::lines::Figure;
use crate::driver::text::{figure, times, with_unit};
use crate::whole::catalog::Peer;
use std::fmt::Write;

/// The bars of a row, the best first.
pub(super) fn bars(row: &Row<'_>) -> String {
    let mut figures: Vec<&Figure> = row.figures().collect();
    figures.sort_by(|a, b| a.min.total_cmp(&b.min));
    // A single bad repetition does not make all bars small: its line is cut off.
    let most = figures
        .iter()
        .map(|f| 1.1 * f.median)
        .fold(f64::MIN_POSITIVE, f64::max);
    let percent = |x: f64| (100.0 * x / most).clamp(0.0, 100.0);
    let mut text = String::from("<div class=\"bars\">");
    for shown in figures {
        let Figure {
            min, median, max, ..
        } = *shown;
        let (from, to) = (percent(min), percent(max));
        let class = if shown.peer == Peer::Ganger {
            " ours"
        } else {
            ""
        };
        let label = with_unit(&figure(min), row.unit);
        let tip = format!(
            "{}: minimum {}, median {}, maximum {} of {}",
            shown.peer,
            figure(min),
            figure(median),
            figure(max),
            shown.reps
        );
        let ratio = match shown.ratio_to_ganger {
            Some(ratio) => times(ratio),
            None => String::new(),
        };
        let _ = write!(
            text,
            "<div class=\"bar{class}\" title=\"{}\"><span class=\"who\">{}</span>\
             <span class=\"track\"><span class=\"fill\" style=\"width:{from:.2}%\"></span>\
             <span class=\"spread\" style=\"left:{from:.2}%;width:{:.2}%\"></span>\
             <span class=\"median\" style=\"left:{:.2}%\"></span></span>\
             <span class=\"value\">{}</span><span class=\"ratio\">{ratio}</span></div>",
            Escaped(&tip),
            shown.peer,
            to - from,
            percent(median),
            Escaped(&label),
        );
    }
    text.push_str("</div>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::fixture;
    use crate::driver::report::markup::unbalanced;
    use crate::driver::report::view::View;

    #[test]
    fn bars_are_sorted_and_as_long_as_their_figures() {
        let results = fixture::results();
        let view = View::of(&results);
        let row = &view.rows[0];
        let text = bars(row);
        assert_eq!(unbalanced(&text), None);
        let widths: Vec<f64> = text
            .split("class=\"fill\" style=\"width:")
            .skip(1)
            .map(|rest| rest.split('%').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(widths.len(), row.figures().count());
        assert!(widths.is_sorted());
        let best = row
            .figures()
            .min_by(|a, b| a.min.total_cmp(&b.min))
            .unwrap();
        let tick = text.split("class=\"median\" style=\"left:").nth(1).unwrap();
        let tick: f64 = tick.split('%').next().unwrap().parse().unwrap();
        assert!((tick / widths[0] - best.median / best.min).abs() < 0.01);
        let least = row.figures().map(|f| f.min).fold(f64::MAX, f64::min);
        let last = row.figures().map(|f| f.min).fold(0.0, f64::max);
        assert!((widths[0] / widths[widths.len() - 1] - least / last).abs() < 0.01);
    }
}
