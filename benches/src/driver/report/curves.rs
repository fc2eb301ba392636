//! A line for each peer with figures, over a quantity that doubles from point to point. Both axes
//! are logarithmic.

use super::markup::Escaped;
use super::view::Plot;
use crate::driver::text::{figure, short, with_unit};
use crate::whole::catalog::Peer;
use std::fmt::Write;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 42.0;

/// Maps figures to places, along an axis.
struct Axis {
    least: f64,
    most: f64,
    start: f64,
    end: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64> + Clone, start: f64, end: f64) -> Self {
        let least = values.clone().fold(f64::MAX, f64::min).max(1e-6);
        let most = values.fold(least, f64::max);
        // A single value is in the middle.
        let (least, most) = if most > least {
            (least, most)
        } else {
            (least / 2.0, most * 2.0)
        };
        Self {
            least,
            most,
            start,
            end,
        }
    }

    fn widened(self) -> Self {
        Self {
            least: self.least / 1.25,
            most: self.most * 1.25,
            ..self
        }
    }

    fn place(&self, x: f64) -> f64 {
        let part = (x.max(self.least) / self.least).ln() / (self.most / self.least).ln();
        self.start + part * (self.end - self.start)
    }

    /// 1, 2, 5, 10 and so on as far as they are on it; with fewer of them where it is long.
    fn ticks(&self) -> Vec<f64> {
        let decades = (self.most / self.least).log10();
        let steps: &[f64] = if decades > 2.5 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let (low, high) = (self.least.log10().floor(), self.most.log10().ceil());
        let mut ticks = Vec::new();
        let mut exponent = low;
        while exponent <= high {
            ticks.extend(steps.iter().map(|step| step * 10_f64.powf(exponent)));
            exponent += 1.0;
        }
        let mut ticks: Vec<f64> = ticks
            .into_iter()
            .filter(|tick| (self.least..=self.most).contains(tick))
            .collect();
        if ticks.len() < 2 {
            ticks = vec![self.least, self.most];
        }
        ticks
    }
}

/// The plot with its legend.
pub(super) fn curve(plot: &Plot<'_>) -> String {
    let points = || plot.lines.iter().flat_map(|(_, line)| line.iter());
    let x = Axis::new(points().map(|point| point.0), LEFT, WIDTH - RIGHT);
    let y = Axis::new(points().map(|point| point.1), HEIGHT - BOTTOM, TOP).widened();
    let mut text = format!(
        "<figure class=\"card\"><figcaption>{}, {}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        Escaped(&plot.title()),
        Escaped(plot.unit),
        Escaped(&plot.title()),
    );
    for tick in y.ticks() {
        let at = y.place(tick);
        let _ = write!(
            text,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            short(tick),
        );
    }
    let mut xs: Vec<f64> = points().map(|point| point.0).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    for &tick in &xs {
        let _ = write!(
            text,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x.place(tick),
            HEIGHT - BOTTOM + 18.0,
            short(tick),
        );
    }
    let _ = write!(
        text,
        "<text class=\"tick\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(LEFT, WIDTH - RIGHT),
        HEIGHT - 6.0,
        plot.over.name(),
    );
    // Ganger's line is drawn last, above all other lines.
    for (peer, line) in plot.lines.iter().rev() {
        draw(&mut text, *peer, line, plot.unit, &x, &y);
    }
    text.push_str("</svg>");
    legend(&mut text, plot.lines.iter().map(|(peer, _)| *peer));
    text.push_str("</figure>\n");
    text
}

fn draw(text: &mut String, peer: Peer, line: &[(f64, f64)], unit: &str, x: &Axis, y: &Axis) {
    let _ = write!(
        text,
        "<g class=\"line {}\"><polyline points=\"",
        class(peer)
    );
    for &(at, value) in line {
        let _ = write!(text, "{:.1},{:.1} ", x.place(at), y.place(value));
    }
    text.push_str("\"/>");
    for &(at, value) in line {
        let _ = write!(
            text,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{peer}, {}: {}</title></circle>",
            x.place(at),
            y.place(value),
            short(at),
            Escaped(&with_unit(&figure(value), unit)),
        );
    }
    text.push_str("</g>");
}

/// The peers and their colours.
pub(super) fn legend(text: &mut String, peers: impl Iterator<Item = Peer>) {
    text.push_str("<div class=\"legend\">");
    for peer in peers {
        let class = class(peer);
        let _ = write!(text, "<span class=\"key {class}\"><i></i>{peer}</span>");
    }
    text.push_str("</div>");
}

/// Returns the class of the page's style that has the peer's colour.
pub(super) fn class(peer: Peer) -> String {
    format!("c{}", peer as usize % 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::fixture;
    use crate::driver::report::markup::unbalanced;
    use crate::driver::report::view::View;

    #[test]
    fn axes_are_logarithmic_and_have_round_ticks() {
        let axis = Axis::new([1.0, 100.0].into_iter(), 0.0, 200.0);
        assert!((axis.place(10.0) - 100.0).abs() < 1e-9);
        let rounded: Vec<f64> = axis.ticks().iter().map(|x| x.round()).collect();
        assert_eq!(rounded, [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        let single = Axis::new([7.0].into_iter(), 0.0, 200.0);
        assert!((single.place(7.0) - 100.0).abs() < 1e-9);
        assert!(single.ticks().len() > 1);
        // Zero is drawn at the least.
        let axis = Axis::new([0.0, 1.0].into_iter(), 0.0, 200.0);
        assert!(axis.place(0.0).abs() < 1e-9);
    }

    #[test]
    fn every_point_is_drawn_inside() {
        let results = fixture::results();
        for plot in View::of(&results).curves {
            let text = curve(&plot);
            assert_eq!(unbalanced(&text), None);
            let points: usize = plot.lines.iter().map(|(_, line)| line.len()).sum();
            assert_eq!(text.matches("<circle").count(), points);
            for place in text.split("cx=\"").skip(1) {
                let x: f64 = place.split('"').next().unwrap().parse().unwrap();
                assert!((LEFT..=WIDTH - RIGHT).contains(&x), "{x}");
            }
            let quoted = |rest: &str| rest.split('"').next().unwrap().to_owned();
            let of = |name: &str| text.split(name).skip(1).map(quoted).collect::<Vec<_>>();
            let circles = of("cx=\"").into_iter().zip(of("cy=\""));
            let circles: Vec<_> = circles.map(|(x, y)| format!("{x},{y}")).collect();
            let joined = of("<polyline points=\"").concat();
            assert!(
                joined.split_whitespace().eq(&circles),
                "lines join the points"
            );
            let heights = text.split("cy=\"").skip(1);
            let heights = heights.map(|place| place.split('"').next().unwrap().parse().unwrap());
            let mut places: Vec<f64> = heights.collect();
            assert!(places.iter().all(|y| (TOP..=HEIGHT - BOTTOM).contains(y)));
            // A larger value is drawn higher, nearer to 0. The last line is drawn first.
            let lines = plot.lines.iter().rev();
            let mut values: Vec<f64> = lines
                .flat_map(|(_, line)| line.iter().map(|p| p.1))
                .collect();
            let highest = (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b]));
            assert!(places.iter().all(|&y| y >= places[highest.unwrap()]));
            values.sort_by(f64::total_cmp);
            places.sort_by(|a, b| b.total_cmp(a));
            assert!(
                (values[0] < values[values.len() - 1]) == (places[0] > places[places.len() - 1])
            );
        }
    }
}
