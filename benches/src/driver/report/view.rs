//! The figures as the report needs them: the leading peer, and by how much.

use crate::driver::lines::{Absence, Figure, Machine, Point, Reason, Results};
use crate::driver::plan::Curve;
use crate::whole::catalog::{Goal, Id, Metric, Peer};
use ganger_bench_options::mode::Mode;
use std::collections::BTreeMap;

/// A result as the report shows it.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// How many workers there were where it is not a curve over them.
    pub workers: usize,
    /// The mode: as the machine is, if this mode has figures.
    pub mode: Mode,
    /// The compared figures, in the order of the runs; without the points of curves.
    pub rows: Vec<Row<'a>>,
    /// The same with idle loops, where `rows` are without.
    pub loops: Vec<Row<'a>>,
    /// The curves, each with its figures.
    pub curves: Vec<Plot<'a>>,
    /// The missing figures.
    pub absences: &'a [Absence],
}

/// A figure of a workload, of all peers that have it.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The workload.
    pub id: Id,
    /// The name of the figure.
    pub variant: &'a str,
    /// The unit.
    pub unit: &'a str,
    /// Ganger's.
    pub ours: Option<&'a Figure>,
    /// The peers', in their order.
    pub peers: Vec<&'a Figure>,
}

/// Lines over a quantity.
#[derive(Clone, Debug)]
pub struct Plot<'a> {
    /// The workload.
    pub id: Id,
    /// The name of the figure.
    pub variant: &'a str,
    /// The unit.
    pub unit: &'a str,
    /// The quantity.
    pub over: Curve,
    /// For each peer how its figure grows.
    pub lines: Vec<(Peer, Vec<(f64, f64)>)>,
}

/// In how many figures Ganger leads.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing<'a> {
    /// In how many figures it is ahead of every peer.
    pub ahead: usize,
    /// How many figures a peer has, too.
    pub of: usize,
    /// The figure in which Ganger is furthest behind, or least ahead.
    pub worst: Option<Lead<'a>>,
}

/// Ganger compared with the best peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Lead<'a> {
    /// The workload.
    pub id: Id,
    /// The name of the figure.
    pub variant: &'a str,
    /// The best peer.
    pub best: &'a Figure,
    /// How many times the best peer's figure Ganger's is.
    pub times: f64,
}

impl<'a> View<'a> {
    /// Of a result.
    #[must_use]
    pub fn of(results: &'a Results) -> Self {
        let workers = usual_workers(&results.figures);
        let figures = &results.figures;
        let mode = main_mode(figures);
        let rows_in = |mode| {
            let base = Point {
                workers,
                processes: None,
                producers: None,
                mode,
            };
            rows(figures.iter().filter(|figure| figure.point() == base))
        };
        Self {
            machine: &results.machine,
            workers,
            mode,
            rows: rows_in(mode),
            loops: match mode {
                Mode::AsIs => rows_in(Mode::Loops),
                Mode::Loops => Vec::new(),
            },
            curves: Curve::ALL
                .into_iter()
                .flat_map(|curve| plots(curve, figures, workers))
                .collect(),
            absences: &results.absences,
        }
    }

    /// Returns the workloads with figures, in order.
    #[must_use]
    pub fn ids(&self) -> Vec<Id> {
        let mut ids: Vec<Id> = self.rows.iter().map(|row| row.id).collect();
        ids.dedup();
        ids
    }

    /// The rows of a workload.
    pub fn rows_of(&self, id: Id) -> impl Iterator<Item = &Row<'a>> {
        self.rows.iter().filter(move |row| row.id == id)
    }

    /// Returns Ganger's standing in these workloads: in the figures of the catalogue.
    #[must_use]
    pub fn standing(&self, is_in: impl Fn(Id) -> bool) -> Standing<'a> {
        let rows = self.rows.iter().filter(|row| is_in(row.id));
        let rows = rows.filter(|row| row.metric().is_some());
        let leads: Vec<_> = rows.filter_map(Row::lead).collect();
        Standing {
            ahead: leads.iter().filter(|lead| lead.times <= 1.0).count(),
            of: leads.len(),
            worst: leads.into_iter().max_by(|a, b| a.times.total_cmp(&b.times)),
        }
    }

    /// Returns the upper bound for Ganger's figure, by the targets and the present figures.
    #[must_use]
    pub fn target(&self, row: &Row<'_>) -> Option<f64> {
        let of_other = |variant| {
            let mut rows = self.rows_of(row.id);
            rows.find(move |other| other.variant == variant)
        };
        let most = |goal: &Goal| {
            let (times, figure) = match *goal {
                Goal::Best(times) => (times, row.worthy()?),
                Goal::Of(peer, times) => (times, row.best(|it| it == peer)?),
                Goal::BestIn(variant, times) => (times, of_other(variant)?.worthy()?),
                Goal::OursIn(variant, times) => (times, of_other(variant)?.ours?),
                Goal::Just(most) => return Some(most),
            };
            Some(times * figure.min)
        };
        let goals = row.metric()?.goals.iter();
        goals.filter_map(most).reduce(f64::min)
    }

    /// The reasons for missing figures, each once: its peer, and its workloads.
    #[must_use]
    pub fn reasons(&self) -> Vec<(Peer, Reason, &'a str, Vec<String>)> {
        let mut reasons: Vec<(Peer, Reason, &str, Vec<String>)> = Vec::new();
        for absence in self.absences {
            let Absence {
                peer, reason, why, ..
            } = absence;
            let point = absence.point();
            let is_base = point.workers == self.workers
                && point.processes.is_none()
                && point.producers.is_none();
            let place = match (is_base, self.is_of_one_mode(absence)) {
                (true, false) => absence.workload.to_string(),
                (true, true) => format!("{} ({})", absence.workload, absence.mode.text()),
                (false, _) => format!("{} ({point})", absence.workload),
            };
            let known = reasons
                .iter_mut()
                .find(|(p, r, w, _)| (p, r, w) == (peer, reason, &why.as_str()));
            match known {
                // A reason that holds in both modes is named once.
                Some((.., places)) if places.contains(&place) => {}
                Some((.., places)) => places.push(place),
                None => reasons.push((*peer, *reason, why, vec![place])),
            }
        }
        reasons
    }
}

impl Lead<'_> {
    /// Returns the word for the worst lead: `worst` if Ganger is behind, otherwise `closest`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if self.times > 1.0 { "worst" } else { "closest" }
    }
}

impl<'a> Row<'a> {
    /// All figures, Ganger's first.
    pub fn figures(&self) -> impl Iterator<Item = &'a Figure> {
        self.ours.into_iter().chain(self.peers.iter().copied())
    }

    /// Returns Ganger's lead over the best peer, if they can be compared: a pure count does not say
    /// which peer is better.
    #[must_use]
    pub fn lead(&self) -> Option<Lead<'a>> {
        let ours = self.ours?;
        let best = self.best(|peer| !peer.is_floor())?;
        let is_comparable = !self.unit.is_empty() && best.min > 0.0;
        is_comparable.then(|| Lead {
            id: self.id,
            variant: self.variant,
            best,
            times: ours.min / best.min,
        })
    }

    /// Returns the best of the peers that count.
    fn best(&self, counts: impl Fn(Peer) -> bool) -> Option<&'a Figure> {
        let peers = self
            .peers
            .iter()
            .copied()
            .filter(|figure| counts(figure.peer));
        peers.min_by(|a, b| a.min.total_cmp(&b.min))
    }

    /// Returns the best peer with a right to be a target: Erlang wakes at once because it never
    /// sleeps, but waits busily.
    fn worthy(&self) -> Option<&'a Figure> {
        self.best(|peer| (self.id, peer) != (Id::W10, Peer::Erlang))
    }

    /// Returns the catalogue's metric; none for figures of queues that do not count.
    #[must_use]
    pub fn metric(&self) -> Option<&'static Metric> {
        self.id.spec().metric(self.variant)
    }

    /// Returns whether the figure has a target.
    #[must_use]
    pub fn has_goals(&self) -> bool {
        self.metric().is_some_and(|metric| !metric.goals.is_empty())
    }

    /// Its name.
    #[must_use]
    pub fn title(&self) -> String {
        let spec = self.id.spec();
        if self.id.is_queue() {
            self.variant.to_owned()
        } else if spec.metrics.len() > 1 {
            format!("{} {} {}", self.id, spec.name, self.variant)
        } else {
            format!("{} {}", self.id, spec.name)
        }
    }

    /// Returns `name` with the unit, unless the name has the unit already behind a colon.
    #[must_use]
    pub fn with_unit(&self, name: &str) -> String {
        let measured = name.rsplit_once(": ").map_or("", |(_, measured)| measured);
        let says_it = measured.split(' ').any(|word| word == self.unit);
        match self.unit {
            "" | "x" => name.to_owned(),
            _ if says_it => name.to_owned(),
            unit => format!("{name}, {unit}"),
        }
    }
}

/// The usual mode, unless all figures are of the other.
fn main_mode(figures: &[Figure]) -> Mode {
    let modes = figures.iter().map(|figure| figure.mode);
    modes.min().unwrap_or_default()
}

/// Returns the most frequent number of workers.
fn usual_workers(figures: &[Figure]) -> usize {
    let mut counts = BTreeMap::<usize, usize>::new();
    for figure in figures {
        *counts.entry(figure.workers).or_default() += 1;
    }
    let most = counts.values().copied().max();
    // At a tie, the figures of the curves come later.
    let mut workers = figures.iter().map(|figure| figure.workers);
    let usual = workers.find(|workers| counts.get(workers).copied() == most);
    usual.unwrap_or(1)
}

/// Figures of the same workload and variant together, in the order of the first of them.
fn rows<'a>(figures: impl Iterator<Item = &'a Figure>) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for figure in figures {
        let is_its = |row: &Row<'_>| row.id == figure.workload && row.variant == figure.variant;
        let at = rows.iter().position(is_its).unwrap_or_else(|| {
            rows.push(Row {
                id: figure.workload,
                variant: &figure.variant,
                unit: &figure.unit,
                ours: None,
                peers: Vec::new(),
            });
            rows.len() - 1
        });
        match figure.peer {
            Peer::Ganger => rows[at].ours = Some(figure),
            _ => rows[at].peers.push(figure),
        }
    }
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
                if let Some(x) = over.place(id, figure.point(), figure.n, workers) {
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

impl Plot<'_> {
    /// Its name.
    #[must_use]
    pub fn title(&self) -> String {
        let spec = self.id.spec();
        let variant = match spec.metrics {
            [_] => String::new(),
            _ => format!(" {}", self.variant),
        };
        format!(
            "{} {}{variant} over {}",
            self.id,
            spec.name,
            self.over.name()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::fixture;

    #[test]
    fn points_of_curves_are_no_rows() {
        let results = fixture::results();
        let view = View::of(&results);
        assert_eq!(view.workers, 2);
        assert_eq!(view.ids(), Id::ALL);
        let mut seen = std::collections::HashSet::new();
        for row in &view.rows {
            assert!(seen.insert((row.id, row.variant)));
            assert!(row.ours.is_some());
            assert!(row.figures().all(|figure| figure.workers == 2));
        }
    }

    /// As `--only W2` measures it: each number of workers has as many figures.
    #[test]
    fn curves_over_workers_come_after_the_usual_number() {
        let mut results = fixture::results();
        results
            .figures
            .retain(|f| f.workload == Id::W2 && f.workers == 2);
        let usual = results.figures.clone();
        for workers in [1, 4, 8] {
            let others = usual.iter().cloned();
            results
                .figures
                .extend(others.map(|figure| Figure { workers, ..figure }));
        }
        assert!(!usual.is_empty());
        assert_eq!(View::of(&results).workers, 2);
    }

    #[test]
    fn the_standing_is_counted_against_the_best_peer() {
        let mut results = fixture::results();
        results
            .figures
            .retain(|f| matches!(f.workload, Id::W1 | Id::W5 | Id::Deque));
        for figure in &mut results.figures {
            figure.min = match (figure.workload, figure.peer) {
                (Id::W1, Peer::Ganger) => 30.0,
                (Id::W1, Peer::Tokio) => 20.0,
                (Id::W5, Peer::Ganger) => 10.0,
                _ => 40.0,
            };
        }
        let view = View::of(&results);
        let standing = view.standing(|id| !id.is_queue());
        assert_eq!((standing.ahead, standing.of), (1, 2));
        let worst = standing.worst.unwrap();
        assert_eq!((worst.id, worst.best.peer), (Id::W1, Peer::Tokio));
        assert!((worst.times - 1.5).abs() < 1e-9);
        // A tie is not behind.
        let queues = view.standing(Id::is_queue);
        let counted = Id::Deque.spec().metrics.len();
        assert_eq!((queues.ahead, queues.of), (counted, counted));
        let all = view.standing(|_| true);
        assert_eq!((all.ahead, all.of), (1 + counted, 2 + counted));
        let targets: Vec<_> = view.rows.iter().map(|row| view.target(row)).collect();
        // 0.9 times the best is 18; 0.35 times tokio is 7.
        assert!((targets[0].unwrap() - 7.0).abs() < 1e-9);
        assert!((targets[1].unwrap() - 20.0).abs() < 1e-9);
    }

    #[test]
    fn figures_of_queues_that_are_not_in_the_catalog_do_not_count() {
        let results = fixture::results();
        let view = View::of(&results);
        let other = view.rows.iter().find(|row| row.variant == fixture::OTHER.0);
        let other = other.expect("it is shown all the same");
        assert!(other.lead().is_some() && other.metric().is_none());
        assert_eq!(view.target(other), None);
        let deque = view.standing(|id| id == Id::Deque);
        assert_eq!(deque.of, Id::Deque.spec().metrics.len());
    }

    #[test]
    fn targets_of_queues_are_of_a_peer_of_another_way_or_of_a_number() {
        let mut results = fixture::results();
        for figure in &mut results.figures {
            figure.min = match figure.peer {
                Peer::Ganger if figure.variant.contains("one by one") => 200.0,
                Peer::Ganger => 100.0,
                Peer::CrossbeamDeque => 40.0,
                Peer::St3 | Peer::Kanal => 20.0,
                _ => 30.0,
            };
        }
        let view = View::of(&results);
        let target = |variant: &str| {
            let row = view.rows.iter().find(|row| row.variant == variant).unwrap();
            view.target(row)
        };
        let is = |variant: &str, most: f64| {
            let target = target(variant).unwrap();
            assert!((target - most).abs() < 1e-9, "{variant}: {target}");
        };
        is("push+pop, depth 8", 9.0);
        is("steal 32 of 64, pushed by another core, an item", 6.0);
        is("4 producers, polling, 48 bytes", 16.0);
        is("take 64 that wait, an item, u64 (drain)", 8.0);
        is("2 producers, groups of 16, u64: producers' CPU ns", 66.0);
        is("heap, u64 (Queue): bytes with one message", 16.8);
        is("heap, 48 bytes: allocations in a million messages", 0.0);
        assert_eq!(target("take 64 that wait, an item, u64"), None);
    }

    #[test]
    fn targets_are_of_peers_that_are_there_and_that_sleep() {
        let mut results = fixture::results();
        results
            .figures
            .retain(|figure| figure.peer != Peer::Tokio && figure.peer != Peer::CrossbeamDeque);
        for figure in &mut results.figures {
            figure.min = match figure.peer {
                Peer::Erlang => 1.0,
                Peer::Actix => 10.0,
                _ => 20.0,
            };
        }
        let view = View::of(&results);
        let is = |id: Id, most: f64| {
            let target = view.target(view.rows_of(id).next().unwrap()).unwrap();
            assert!((target - most).abs() < 1e-9, "{id}: {target}");
        };
        is(Id::W1, 0.9);
        is(Id::W10, 9.5);
        is(Id::Deque, 9.0);
    }

    #[test]
    fn labels_say_the_unit_once() {
        let results = fixture::results();
        let rows = View::of(&results).rows;
        let labels: Vec<_> = rows.iter().map(|row| row.with_unit(&row.title())).collect();
        for label in [
            "W1 spawn_external, ns",
            "W8 memory_idle rss, bytes",
            "W13 fairness",
            "push+pop, depth 8, ns",
            "owner, depth 8, 1 thief looking: CPU ns",
            "fib, a task a call: ms",
            "heap, 48 bytes: bytes with one message",
            "heap, u64: allocations in a million messages",
            "take 64 that wait, an item, 48 bytes, ns",
        ] {
            assert!(labels.iter().any(|it| it == label), "{label}: {labels:?}");
        }
    }

    #[test]
    fn curves_have_a_line_for_a_peer_in_order() {
        let results = fixture::results();
        let view = View::of(&results);
        let workers = view.curves.iter().find(|p| p.id == Id::W2).unwrap();
        let (peer, line) = &workers.lines[0];
        assert_eq!(*peer, Peer::Ganger);
        let xs: Vec<_> = line.iter().map(|(x, _)| *x).collect();
        assert_eq!(xs, [1.0, 2.0, 4.0, 8.0]);
        let processes: Vec<_> = view
            .curves
            .iter()
            .filter(|p| p.over == Curve::Processes)
            .collect();
        assert_eq!(processes.len(), 3, "rss, spawn and wake");
        assert_eq!(processes[0].lines[0].1.last().unwrap().0, 1e6);
    }

    #[test]
    fn every_absence_is_said() {
        let results = fixture::results();
        let view = View::of(&results);
        let reasons = view.reasons();
        let of_one = |it: &&Absence| it.mode == Mode::AsIs;
        assert_eq!(
            reasons.len(),
            results.absences.iter().filter(of_one).count()
        );
        let memory = reasons.iter().find(|r| r.1 == Reason::Memory).unwrap();
        assert_eq!(memory.3, ["W8 (2 workers, 10000000 processes)"]);
    }
}
