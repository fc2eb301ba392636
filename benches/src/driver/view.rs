//! The figures as the report needs them: which peer leads, and by how much.

use super::lines::{Absence, Figure, Machine, Point, Results};
use super::plan::Curve;
use crate::whole::catalog::{Goal, Id, Metric, Peer};
use ganger_bench_options::mode::Mode;
use std::collections::BTreeMap;

/// A result as the report shows it.
#[derive(Clone, Debug)]
pub(super) struct View<'a> {
    pub(super) machine: &'a Machine,
    /// How many workers there were where it is not a curve over them.
    pub(super) workers: usize,
    /// As the machine is, if this mode has figures.
    pub(super) mode: Mode,
    /// The compared figures, in the order of the runs; without the points of curves.
    pub(super) rows: Vec<Row<'a>>,
    /// The same with idle loops, where `rows` are without.
    pub(super) loops: Vec<Row<'a>>,
    pub(super) curves: Vec<Plot<'a>>,
    pub(super) absences: &'a [Absence],
}

/// A figure of a workload, of all peers that have it; Ganger's is the first.
#[derive(Clone, Debug)]
pub(super) struct Row<'a> {
    pub(super) id: Id,
    pub(super) variant: &'a str,
    pub(super) unit: &'a str,
    pub(super) figures: Vec<&'a Figure>,
}

/// Lines over a quantity: how the figure of each peer grows.
#[derive(Clone, Debug)]
pub(super) struct Plot<'a> {
    pub(super) id: Id,
    pub(super) variant: &'a str,
    pub(super) unit: &'a str,
    pub(super) over: Curve,
    pub(super) lines: Vec<(Peer, Vec<(f64, f64)>)>,
}

/// Ganger compared with the best peer: how many times its figure Ganger's is.
pub(super) struct Lead<'a> {
    pub(super) id: Id,
    pub(super) variant: &'a str,
    pub(super) best: &'a Figure,
    pub(super) times: f64,
}

impl<'a> View<'a> {
    /// Of a result.
    pub(super) fn of(results: &'a Results) -> Self {
        let figures = &results.figures;
        let workers = usual_workers(figures);
        let mode = figures.iter().map(|figure| figure.point.mode).min();
        let mode = mode.unwrap_or_default();
        let rows_in = |mode| {
            let base = Point::of(workers, mode);
            rows(figures.iter().filter(|figure| figure.point == base))
        };
        let loops = (mode == Mode::AsIs).then(|| rows_in(Mode::Loops));
        let curves = Curve::ALL.into_iter();
        Self {
            machine: &results.machine,
            workers,
            mode,
            rows: rows_in(mode),
            loops: loops.unwrap_or_default(),
            curves: curves.flat_map(|it| plots(it, figures, workers)).collect(),
            absences: &results.absences,
        }
    }

    /// Returns the upper bound for Ganger's figure, by the targets and the present figures.
    pub(super) fn target(&self, row: &Row<'_>) -> Option<f64> {
        let of_other = |variant| {
            let mut rows = self.rows.iter();
            rows.find(|it| (it.id, it.variant) == (row.id, variant))
        };
        let most = |goal: &Goal| {
            let (times, figure) = match *goal {
                Goal::Best(times) => (times, row.worthy()?),
                Goal::Of(peer, times) => (times, row.best(|it| it == peer)?),
                Goal::BestIn(variant, times) => (times, of_other(variant)?.worthy()?),
                Goal::OursIn(variant, times) => (times, of_other(variant)?.ours()?),
                Goal::Just(most) => return Some(most),
            };
            Some(times * figure.min)
        };
        let goals = row.metric()?.goals.iter();
        goals.filter_map(most).reduce(f64::min)
    }

    /// Returns Ganger's lead over the best peer with idle loops.
    pub(super) fn lead_with_loops(&self, row: &Row<'_>) -> Option<Lead<'a>> {
        let is_same = |other: &&Row<'_>| (other.id, other.variant) == (row.id, row.variant);
        self.loops.iter().find(is_same).and_then(Row::lead)
    }

    /// The place of a missing figure; `None` if it is missing as well without idle loops.
    pub(super) fn place(&self, absence: &Absence) -> Option<String> {
        let Absence {
            workload, point, ..
        } = absence;
        let as_is = Point {
            mode: Mode::AsIs,
            ..*point
        };
        let is_known = |it: &Absence| {
            (it.workload, it.peer, it.point, &it.why)
                == (*workload, absence.peer, as_is, &absence.why)
        };
        if point.mode != Mode::AsIs && self.absences.iter().any(is_known) {
            return None;
        }
        let base = Point::of(self.workers, Mode::AsIs);
        Some(match *point == base {
            true => workload.to_string(),
            false => format!("{workload} ({point})"),
        })
    }
}

impl<'a> Row<'a> {
    pub(super) fn ours(&self) -> Option<&'a Figure> {
        self.best(|peer| peer == Peer::Ganger)
    }

    /// Returns the best of the peers that count.
    pub(super) fn best(&self, counts: impl Fn(Peer) -> bool) -> Option<&'a Figure> {
        let peers = self.figures.iter().copied();
        let peers = peers.filter(|figure| counts(figure.peer));
        peers.min_by(|a, b| a.min.total_cmp(&b.min))
    }

    /// Returns the best peer with a right to be a target: Erlang wakes at once because it never
    /// sleeps, but waits busily.
    fn worthy(&self) -> Option<&'a Figure> {
        self.best(|peer| peer != Peer::Ganger && (self.id, peer) != (Id::W10, Peer::Erlang))
    }

    /// Returns Ganger's lead over the best peer, if they can be compared: a pure count does not say
    /// which peer is better.
    pub(super) fn lead(&self) -> Option<Lead<'a>> {
        let ours = self.ours()?;
        let best = self.best(|peer| peer != Peer::Ganger && !peer.is_floor())?;
        let is_comparable = !self.unit.is_empty() && best.min > 0.0;
        is_comparable.then(|| Lead {
            id: self.id,
            variant: self.variant,
            best,
            times: ours.min / best.min,
        })
    }

    /// Returns the catalogue's metric; none for figures of queues that do not count.
    pub(super) fn metric(&self) -> Option<&'static Metric> {
        self.id.spec().metric(self.variant)
    }

    pub(super) fn title(&self) -> String {
        title(self.id, self.variant)
    }

    /// Returns the title with the unit, unless the title has the unit already behind a colon.
    pub(super) fn title_with_unit(&self) -> String {
        let title = self.title();
        let measured = title.rsplit_once(": ").map_or("", |(_, measured)| measured);
        match self.unit {
            "" | "x" => title,
            unit if measured.split(' ').any(|word| word == unit) => title,
            unit => format!("{title}, {unit}"),
        }
    }
}

impl Plot<'_> {
    pub(super) fn title(&self) -> String {
        let title = title(self.id, self.variant);
        format!("{title} over {}, {}", self.over.name(), self.unit)
    }
}

fn title(id: Id, variant: &str) -> String {
    match id.spec().metrics {
        _ if id.is_queue() => variant.to_owned(),
        [_] => format!("{id} {}", id.spec().name),
        _ => format!("{id} {} {variant}", id.spec().name),
    }
}

/// Returns the most frequent number of workers. At a tie, the figures of the curves come later.
fn usual_workers(figures: &[Figure]) -> usize {
    let mut counts = BTreeMap::<usize, usize>::new();
    for figure in figures {
        *counts.entry(figure.point.workers).or_default() += 1;
    }
    let most = counts.values().copied().max();
    let mut workers = figures.iter().map(|figure| figure.point.workers);
    let usual = workers.find(|workers| counts.get(workers).copied() == most);
    usual.unwrap_or(1)
}

/// Figures of the same workload and variant together, in the order of the first of them.
fn rows<'a>(figures: impl Iterator<Item = &'a Figure>) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for figure in figures {
        let is_its =
            |row: &&mut Row<'_>| row.id == figure.workload && row.variant == figure.variant;
        match rows.iter_mut().find(is_its) {
            Some(row) => row.figures.push(figure),
            None => rows.push(Row {
                id: figure.workload,
                variant: &figure.variant,
                unit: &figure.unit,
                figures: vec![figure],
            }),
        }
    }
    rows.iter_mut()
        .for_each(|row| row.figures.sort_by_key(|figure| figure.peer));
    rows.sort_by_key(|row| row.id);
    rows
}

/// Returns the lines over a quantity that have more than a single point.
fn plots(over: Curve, figures: &[Figure], workers: usize) -> Vec<Plot<'_>> {
    let mut plots: Vec<Plot<'_>> = Vec::new();
    for &id in over.workloads() {
        for metric in id.spec().metrics {
            let mut lines = BTreeMap::<Peer, Vec<(f64, f64)>>::new();
            let is_its = |f: &&Figure| f.workload == id && f.variant == metric.variant;
            for figure in figures.iter().filter(is_its) {
                if let Some(x) = over.place(id, figure.point, figure.n, workers) {
                    let line = lines.entry(figure.peer).or_default();
                    line.push((x as f64, figure.min));
                }
            }
            for line in lines.values_mut() {
                line.sort_by(|a, b| a.0.total_cmp(&b.0));
            }
            if lines.values().any(|line| line.len() > 1) {
                plots.push(Plot {
                    id,
                    variant: metric.variant,
                    unit: metric.unit,
                    over,
                    lines: lines.into_iter().collect(),
                });
            }
        }
    }
    plots
}
