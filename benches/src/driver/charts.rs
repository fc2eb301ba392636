//! The main charts as SVG files, for a README: Ganger compared with the best peer in every whole
//! workload, and the curves. They are on white, for a file does not know where it is shown.

use super::outputs::write;
use super::report::{Plot, Row, View};
use crate::text::{figure, short, times, with_unit};
use crate::whole::catalog::Peer;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const INK: &str = "#282826";
const SOFT: &str = "#62625d";
const GRID: &str = "#e2e2dc";
/// Ganger's color, and the colors of the peers, in turns.
const COLORS: [&str; 8] = [
    "#2a78d6", "#eb6834", "#1baf7a", "#b88700", "#d6568f", "#147a14", "#4a3aa7", "#7a6a58",
];

/// A drawing.
struct Svg {
    size: (f64, f64),
    elements: String,
}

/// Returns the charts: each chart's title, and the name of its file without extension.
pub(super) fn charts(view: &View<'_>) -> Vec<(String, String)> {
    drawn(view).map(|(title, name, _)| (title, name)).collect()
}

/// Writes the charts into the folder.
///
/// # Errors
/// The path of the file, and why it can't be written.
pub(super) fn write_charts(view: &View<'_>, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder)
        .map_err(|error| format!("can't make {}: {error}", folder.display()))?;
    drawn(view).try_for_each(|(_, name, svg)| {
        let ((width, height), elements) = (svg.size, svg.elements);
        let text = format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{elements}</svg>\n"
        );
        write(&folder.join(name).with_extension("svg"), text)
    })
}

/// Draws the charts, each with its title and its name.
fn drawn(view: &View<'_>) -> impl Iterator<Item = (String, String, Svg)> {
    let title = "Ganger beside the best peer in every workload";
    let overview = overview(&view.rows);
    let overview = overview.map(|svg| (title.to_owned(), "overview".to_owned(), svg));
    let curves = view.curves.iter().map(|plot| {
        let name = format!("{}-{}-{}", plot.id, plot.variant, plot.over.name());
        (plot.title(), name, curve(plot))
    });
    overview.into_iter().chain(curves)
}

impl Svg {
    fn new(size: (f64, f64)) -> Self {
        let elements = String::new();
        Self { size, elements }
    }

    /// Writes words; `anchor` says whether they begin or end there.
    fn text(&mut self, words: &str, (x, y): (f64, f64), color: &str, anchor: &str) {
        let words = words.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            self.elements,
            "<text x=\"{x:.0}\" y=\"{y:.0}\" fill=\"{color}\" font-size=\"14\" \
             text-anchor=\"{anchor}\" dominant-baseline=\"central\">{words}</text>"
        );
    }

    fn line(&mut self, points: &[(f64, f64)], color: &str, width: u32) {
        let points: Vec<_> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = writeln!(
            self.elements,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"/>",
            points.join(" ")
        );
    }
}

/// Draws a bar a workload: Ganger's figure compared with the best peer's, which is the line.
fn overview(rows: &[Row<'_>]) -> Option<Svg> {
    const LINE: f64 = 30.0;
    const HEAD: f64 = 64.0;
    const LEFT: f64 = 310.0;
    const END: f64 = 660.0;
    let whole = rows.iter().filter(|row| !row.id.is_queue());
    let leads: Vec<_> = whole.filter_map(|row| Some((row, row.lead()?))).collect();
    let most = leads.iter().map(|(_, lead)| lead.times).reduce(f64::max)?;
    let most = most.clamp(1.25, 3.0);
    let place = |ratio: f64| LEFT + (ratio.min(most) / most) * (END - LEFT);
    let bottom = HEAD + LINE * leads.len() as f64;
    let mut svg = Svg::new((1000.0, bottom + 16.0));
    let ahead = leads.iter().filter(|(_, lead)| lead.times <= 1.0).count();
    let title = format!(
        "Ganger beside the best peer: ahead in {ahead} of {}",
        leads.len()
    );
    svg.text(&title, (16.0, 18.0), INK, "start");
    let how = "shorter is better; the line is the best peer";
    svg.text(how, (16.0, 42.0), SOFT, "start");
    for (nth, (row, lead)) in leads.iter().enumerate() {
        let middle = HEAD + LINE * (nth as f64 + 0.5);
        let color = COLORS[usize::from(lead.times > 1.0)];
        let width = (place(lead.times) - LEFT).max(2.0);
        let _ = writeln!(
            svg.elements,
            "<rect x=\"{LEFT}\" y=\"{}\" width=\"{width:.0}\" height=\"18\" fill=\"{color}\"/>",
            middle - 9.0
        );
        let said = |min: f64| with_unit(&figure(min), row.unit);
        let label = format!(
            "{} | {} {}",
            said(lead.ours.min),
            lead.best.peer,
            said(lead.best.min)
        );
        svg.text(&row.title(), (LEFT - 10.0, middle), INK, "end");
        svg.text(&times(lead.times), (END + 70.0, middle), color, "end");
        svg.text(&label, (END + 84.0, middle), SOFT, "start");
    }
    let best = place(1.0);
    svg.line(&[(best, 56.0), (best, bottom + 4.0)], INK, 1);
    Some(svg)
}

/// Draws a line a peer, with logarithmic axes.
fn curve(plot: &Plot<'_>) -> Svg {
    const LEFT: f64 = 80.0;
    const RIGHT: f64 = 600.0;
    const TOP: f64 = 40.0;
    const BOTTOM: f64 = 420.0;
    let range = |of: fn(&(f64, f64)) -> f64| {
        let all = || plot.lines.values().flatten().map(of);
        let least = all().fold(f64::MAX, f64::min).max(1e-6) / 1.15;
        (least, all().fold(least, f64::max) * 1.15)
    };
    let (across, up) = (range(|it| it.0), range(|it| it.1));
    let share = |value: f64, (least, most): (f64, f64)| (value / least).ln() / (most / least).ln();
    let x = |value: f64| LEFT + share(value, across) * (RIGHT - LEFT);
    let y = |value: f64| BOTTOM - share(value, up) * (BOTTOM - TOP);
    let mut svg = Svg::new((760.0, 460.0));
    svg.text(&plot.title(), (16.0, 18.0), INK, "start");
    for tick in ticks(across) {
        svg.line(&[(x(tick), TOP), (x(tick), BOTTOM)], GRID, 1);
        svg.text(&short(tick), (x(tick), BOTTOM + 16.0), SOFT, "middle");
    }
    for tick in ticks(up) {
        svg.line(&[(LEFT, y(tick)), (RIGHT, y(tick))], GRID, 1);
        svg.text(&short(tick), (LEFT - 8.0, y(tick)), SOFT, "end");
    }
    let mut ends = Vec::new();
    for (&peer, line) in plot.lines.iter().rev() {
        let color = COLORS[peer as usize % COLORS.len()];
        let points: Vec<_> = line.iter().map(|&(at, value)| (x(at), y(value))).collect();
        svg.line(&points, color, if peer == Peer::Ganger { 3 } else { 2 });
        for (x, y) in &points {
            let _ = writeln!(
                svg.elements,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>"
            );
        }
        ends.extend(points.last().map(|end| (end.1, peer, color)));
    }
    // Names stand at the ends of their lines, moved if two would meet.
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = TOP;
    for (y, peer, color) in ends {
        let y = y.max(free);
        free = y + 16.0;
        svg.text(peer.name(), (RIGHT + 10.0, y), color, "start");
    }
    svg
}

/// Returns 1, 2 and 5 times the powers of ten within a range.
fn ticks((least, most): (f64, f64)) -> impl Iterator<Item = f64> {
    let powers = (-6..12).flat_map(|power| [1.0, 2.0, 5.0].map(|it| it * 10_f64.powi(power)));
    let all: Vec<_> = powers
        .filter(|tick| (least..=most).contains(tick))
        .collect();
    // Ten ticks and more would be too close: then the powers of ten alone are left.
    let are_few = all.len() < 10;
    let is_power = |tick: f64| (tick.log10() - tick.log10().round()).abs() < 1e-9;
    all.into_iter()
        .filter(move |&tick| are_few || is_power(tick))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::fixture;

    #[test]
    fn every_chart_is_a_drawing() {
        let results = fixture::results();
        let view = View::of(&results);
        let dir = tempfile::tempdir().unwrap();
        write_charts(&view, dir.path()).unwrap();
        assert_eq!(charts(&view).len(), 1 + view.curves.len());
        for (title, name) in charts(&view) {
            let svg = fs::read_to_string(dir.path().join(name).with_extension("svg")).unwrap();
            assert!(
                svg.ends_with("</svg>\n") && !svg.contains("NaN"),
                "{title}: {svg}"
            );
        }
        let svg = fs::read_to_string(dir.path().join("overview.svg")).unwrap();
        assert!(svg.contains("W1 start a process from outside"), "{svg}");
        assert!(charts(&View::of(&Default::default())).is_empty());
    }
}
