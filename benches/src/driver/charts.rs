//! The main charts as files, for a README: Ganger compared with the best peer in every whole
//! workload, and the curves. They are on white, for a file does not know where it is shown.

use super::outputs::write;
use super::view::{Plot, Row, View};
use crate::text::{figure, short, times, with_unit};
use crate::whole::catalog::Peer;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fs;
use std::path::Path;

const WIDTH: u32 = 920;
const LINE: u32 = 30;
const HEAD: u32 = 64;
const CURVE: (u32, u32) = (760, 460);

const OURS: RGBColor = RGBColor(42, 120, 214);
const INK: RGBColor = RGBColor(40, 40, 38);
const SOFT: RGBColor = RGBColor(98, 98, 93);
const GRID: RGBColor = RGBColor(226, 226, 220);
const COLORS: [RGBColor; 8] = [
    OURS,
    RGBColor(235, 104, 52),
    RGBColor(27, 175, 122),
    RGBColor(184, 135, 0),
    RGBColor(214, 86, 143),
    RGBColor(20, 122, 20),
    RGBColor(74, 58, 167),
    RGBColor(122, 106, 88),
];

type Failure<B> = DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>;

/// A chart.
enum Chart<'a> {
    Overview(Vec<Standing>),
    Curve(&'a Plot<'a>),
}

/// A line of the overview.
struct Standing {
    title: String,
    ours: String,
    best: String,
    /// How many times the best peer's figure Ganger's is.
    times: f64,
}

/// Returns the charts of [`write_charts`]: each chart's title, and the name of its files without
/// extension.
pub(super) fn charts(view: &View<'_>) -> Vec<(String, String)> {
    let drawn = drawn(view).into_iter();
    drawn.map(|(chart, name)| (chart.title(), name)).collect()
}

/// Writes `overview` and each curve into the folder, as SVG.
///
/// # Errors
/// The file that can't be written, and why.
pub(super) fn write_charts(view: &View<'_>, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder)
        .map_err(|error| format!("can't make {}: {error}", folder.display()))?;
    for (chart, name) in drawn(view) {
        chart.write(&folder.join(name))?;
    }
    Ok(())
}

/// The charts by their names.
fn drawn<'a>(view: &'a View<'_>) -> Vec<(Chart<'a>, String)> {
    let standings = standings(view);
    let overview = (!standings.is_empty()).then_some(Chart::Overview(standings));
    let overview = overview.map(|chart| (chart, "overview".to_owned()));
    let curves = view.curves.iter().map(|plot| {
        let name = format!("{}-{}-{}", plot.id, plot.variant, plot.over.name());
        (Chart::Curve(plot), name)
    });
    overview.into_iter().chain(curves).collect()
}

fn standings(view: &View<'_>) -> Vec<Standing> {
    let whole = view.rows.iter().filter(|row| !row.id.is_queue());
    let standing = |row: &Row<'_>| {
        let lead = row.lead()?;
        let said = |min: f64| with_unit(&figure(min), row.unit);
        Some(Standing {
            title: row.title(),
            ours: said(lead.times * lead.best.min),
            best: format!("{} {}", lead.best.peer, said(lead.best.min)),
            times: lead.times,
        })
    };
    whole.filter_map(standing).collect()
}

impl Chart<'_> {
    fn title(&self) -> String {
        match self {
            Self::Overview(_) => "Ganger beside the best peer in every workload".to_owned(),
            Self::Curve(plot) => plot.title(),
        }
    }

    fn size(&self) -> (u32, u32) {
        match self {
            Self::Overview(standings) => (
                WIDTH,
                HEAD + LINE * u32::try_from(standings.len()).unwrap_or(0) + 16,
            ),
            Self::Curve(_) => CURVE,
        }
    }

    /// Writes `path.svg`.
    fn write(&self, path: &Path) -> Result<(), String> {
        let size = self.size();
        let failed =
            |error: &dyn std::fmt::Display| format!("can't draw {}: {error}", path.display());
        let mut text = String::new();
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        self.draw(&area).map_err(|error| failed(&error))?;
        drop(area);
        write(&path.with_extension("svg"), &text)
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure<B>> {
        area.fill(&WHITE)?;
        match self {
            Self::Overview(standings) => overview(area, standings)?,
            Self::Curve(plot) => curve(area, plot)?,
        }
        area.present()
    }
}

/// Draws a bar a workload: Ganger's figure compared with the best peer's, which is the dashed line.
fn overview<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    standings: &[Standing],
) -> Result<(), Failure<B>> {
    const LEFT: i32 = 230;
    const END: i32 = 580;
    let most = standings
        .iter()
        .map(|s| s.times)
        .fold(1.25, f64::max)
        .min(3.0);
    let place = |ratio: f64| LEFT + pixels((ratio.min(most) / most) * f64::from(END - LEFT));
    let write = |words: &str, at: (i32, i32), color: RGBColor, h: HPos| {
        let style = TextStyle::from(("sans-serif", 14))
            .color(&color)
            .pos(Pos::new(h, VPos::Center));
        area.draw_text(words, &style, at)
    };
    let ahead = standings.iter().filter(|s| s.times <= 1.0).count();
    let title = format!(
        "Ganger beside the best peer: ahead in {ahead} of {}",
        standings.len()
    );
    write(&title, (16, 18), INK, HPos::Left)?;
    write(
        "shorter is better; the line is the best peer",
        (16, 42),
        SOFT,
        HPos::Left,
    )?;
    let bottom =
        i32::try_from(HEAD + LINE * u32::try_from(standings.len()).unwrap_or(0)).unwrap_or(0);
    for (nth, standing) in (0..).zip(standings) {
        let top = HEAD + LINE * nth;
        let middle = i32::try_from(top + LINE / 2).unwrap_or(0);
        let color = if standing.times <= 1.0 {
            OURS
        } else {
            COLORS[1]
        };
        write(&standing.title, (LEFT - 10, middle), INK, HPos::Right)?;
        let end = place(standing.times).max(LEFT + 2);
        area.draw(&Rectangle::new(
            [(LEFT, middle - 9), (end, middle + 9)],
            color.filled(),
        ))?;
        write(
            &times(standing.times),
            (END + 70, middle),
            color,
            HPos::Right,
        )?;
        let label = format!("{} | {}", standing.ours, standing.best);
        write(&label, (END + 84, middle), SOFT, HPos::Left)?;
    }
    let best = place(1.0);
    area.draw(&PathElement::new(
        [(best, 56), (best, bottom + 4)],
        INK.stroke_width(1),
    ))
}

fn curve<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    plot: &Plot<'_>,
) -> Result<(), Failure<B>> {
    let points = || plot.lines.iter().flat_map(|(_, line)| line.iter());
    let range = |of: fn(&(f64, f64)) -> f64| {
        let least = points().map(of).fold(f64::MAX, f64::min).max(1e-6);
        let most = points().map(of).fold(least, f64::max);
        least / 1.15..most * 1.15
    };
    let title = Chart::Curve(plot).title();
    area.draw_text(&title, &text(15, &INK), (16, 10))?;
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .margin_top(40)
        .margin_right(150)
        .x_label_area_size(28)
        .y_label_area_size(64)
        .build_cartesian_2d(range(|p| p.0).log_scale(), range(|p| p.1).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(SOFT)
        .label_style(text(12, &SOFT))
        .x_label_formatter(&|x| short(*x))
        .y_label_formatter(&|y| short(*y))
        .draw()?;
    let mut ends = Vec::new();
    for (peer, line) in plot.lines.iter().rev() {
        let color = COLORS[*peer as usize % COLORS.len()];
        let width = if *peer == Peer::Ganger { 3 } else { 2 };
        chart.draw_series(LineSeries::new(
            line.iter().copied(),
            color.stroke_width(width),
        ))?;
        chart.draw_series(
            line.iter()
                .map(|&point| Circle::new(point, 3, color.filled())),
        )?;
        if let Some(last) = line.last() {
            ends.push((chart.backend_coord(last), *peer, color));
        }
    }
    // Names stand at the ends of their lines, moved if two would meet.
    ends.sort_by_key(|((_, y), ..)| *y);
    let mut free = 40;
    for ((x, y), peer, color) in ends {
        let y = y.max(free);
        free = y + 16;
        let style = text(13, &color).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw_text(peer.name(), &style, (x.max(600) + 10, y))?;
    }
    Ok(())
}

/// Rounds to the next pixel: a chart has at most some thousand of them.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a float that is too large becomes the largest"
)]
fn pixels(length: f64) -> i32 {
    length.round() as i32
}

/// Returns a style of the only family.
fn text(size: i32, color: &RGBColor) -> TextStyle<'_> {
    TextStyle::from(("sans-serif", size)).color(color)
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
        let mut names: Vec<String> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names.len(), 1 + view.curves.len(), "{names:?}");
        let svg = fs::read_to_string(dir.path().join("overview.svg")).unwrap();
        assert!(
            svg.contains("W1 spawn_external") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
    }

    #[test]
    fn nothing_is_no_chart() {
        let dir = tempfile::tempdir().unwrap();
        write_charts(&View::of(&Default::default()), dir.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
