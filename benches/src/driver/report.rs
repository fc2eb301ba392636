//! The report: the figures as the reader needs them, which peer leads and by how much, as Markdown.

use super::lines::{Absence, Figure, Point, Reason, Results};
use super::plan::Curve;
use crate::text::{figure, times, with_unit};
use crate::whole::catalog::{Goal, Id, Metric, Peer};
use ganger_bench_options::mode::Mode;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A result as the report shows it.
pub(super) struct View<'a> {
    results: &'a Results,
    /// How many workers there were where it is not a curve over them.
    workers: usize,
    /// As the machine is, if this mode has figures.
    mode: Mode,
    /// The compared figures, in the order of the runs; without the points of curves.
    pub(super) rows: Vec<Row<'a>>,
    /// The compared figures with idle loops, if `rows` are without.
    loops: Vec<Row<'a>>,
    pub(super) curves: Vec<Plot<'a>>,
}

/// A figure of a workload, of all peers that have it; Ganger's is the first.
pub(super) struct Row<'a> {
    pub(super) id: Id,
    pub(super) variant: &'a str,
    pub(super) unit: &'a str,
    figures: Vec<&'a Figure>,
}

/// Lines over a quantity: how the figure of each peer grows.
pub(super) struct Plot<'a> {
    pub(super) id: Id,
    pub(super) variant: &'a str,
    unit: &'a str,
    pub(super) over: Curve,
    pub(super) lines: BTreeMap<Peer, Vec<(f64, f64)>>,
}

/// Ganger compared with the best peer: how many times its figure Ganger's is.
pub(super) struct Lead<'a> {
    pub(super) ours: &'a Figure,
    pub(super) best: &'a Figure,
    pub(super) times: f64,
}

/// Whether a part of the report has a workload.
type Has = fn(Id) -> bool;

impl<'a> View<'a> {
    /// Creates the view of results.
    pub(super) fn of(results: &'a Results) -> Self {
        let figures = &results.figures;
        // The most frequent number. At a tie, the figures of the curves come later.
        let count = |workers| {
            figures
                .iter()
                .filter(|it| it.point.workers == workers)
                .count()
        };
        let all = figures.iter().map(|figure| figure.point.workers);
        let workers = all.rev().max_by_key(|&workers| count(workers)).unwrap_or(1);
        let mode = figures.iter().map(|figure| figure.point.mode).min();
        let mode = mode.unwrap_or_default();
        let loops = match mode {
            Mode::AsIs => rows(figures, Point::of(workers, Mode::Loops)),
            Mode::Loops => Vec::new(),
        };
        let curves = Curve::ALL.into_iter();
        Self {
            results,
            workers,
            mode,
            rows: rows(figures, Point::of(workers, mode)),
            loops,
            curves: curves.flat_map(|it| plots(it, figures, workers)).collect(),
        }
    }

    /// Returns the upper bound for Ganger's figure, by the targets and the present figures.
    fn target(&self, row: &Row<'_>) -> Option<f64> {
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
        row.metric()?.goals.iter().filter_map(most).reduce(f64::min)
    }

    /// Returns Ganger's lead over the best peer with idle loops.
    fn lead_with_loops(&self, row: &Row<'_>) -> Option<Lead<'a>> {
        let is_same = |other: &&Row<'_>| (other.id, other.variant) == (row.id, row.variant);
        self.loops.iter().find(is_same).and_then(Row::lead)
    }

    /// Returns the whole report, without the charts.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!("# Ganger beside its peers\n\n{}\n\n", self.platform());
        if self.results.machine.quick {
            text += "**Small sizes: this shows that everything works, not how fast.**\n\n";
        }
        if self.results.machine.interrupted {
            text += "**Stopped before all was measured.**\n\n";
        }
        text += &self.standing();
        let parts: [(&str, Has); 3] = [
            ("Whole workloads", |id| {
                !id.is_queue() && !id.is_of_cluster()
            }),
            ("Cluster", Id::is_of_cluster),
            ("Queues", Id::is_queue),
        ];
        for (heading, has) in parts {
            let table = self.table(true, |row| has(row.id));
            if !table.is_empty() {
                let _ = write!(text, "\n## {heading}\n\n{table}");
            }
        }
        match self.absent() {
            absent if absent.is_empty() => text,
            absent => text + "\n## What is not here\n\n" + &absent,
        }
    }

    /// Returns the line with the machine and the versions of the figures, and the state of the
    /// machine.
    pub(super) fn platform(&self) -> String {
        let machine = &self.results.machine;
        let versions = machine.versions.iter();
        let versions: Vec<_> = versions.map(|(name, v)| format!("{name} {v}")).collect();
        let modes = match (self.mode, self.loops.is_empty()) {
            (Mode::AsIs, true) => "Measured as the machine is.",
            (Mode::AsIs, false) => {
                "Measured as the machine is, and whole workloads with an idle-priority loop on \
                 every processor, too."
            }
            (Mode::Loops, _) => "Measured with an idle-priority loop on every processor.",
        };
        let mut absences = self.results.absences.iter();
        let lacks = absences.find(|it| it.reason == Reason::NoMode);
        let lacks = lacks.map(|it| format!(" Not {}: {}.", it.point.mode.text(), it.why));
        let calm = match &machine.calm {
            Some(calm) => calm.text(),
            None => "How busy others kept the machine is not known.".to_owned(),
        };
        format!(
            "{}, {} cores, {}, governor {}; {} workers; {}; allocator: {}; {}; commit {}; {} UTC; \
             `{}`. {modes}{} {calm}",
            escaped(&machine.cpu),
            machine.cores,
            machine.kernel,
            machine.governor,
            self.workers,
            machine.rustc,
            machine.allocator,
            versions.join(", "),
            machine.commit,
            machine.date,
            machine.command,
            escaped(&lacks.unwrap_or_default()),
        )
    }

    /// Formats figures as a table, a row a line and a peer a column. A cell has the minimum and, in
    /// brackets, Ganger's figure divided by the peer's, pair by pair. The best of several is bold.
    /// With figures of idle loops, a column has Ganger's ratio to the best peer in that mode. Empty
    /// without figures.
    pub(super) fn table(&self, has_targets: bool, is_in: impl Fn(&Row<'_>) -> bool) -> String {
        let rows: Vec<&Row<'_>> = self.rows.iter().filter(|row| is_in(row)).collect();
        let figures = rows.iter().flat_map(|row| &row.figures);
        let mut peers: Vec<Peer> = figures.map(|figure| figure.peer).collect();
        peers.sort_unstable();
        peers.dedup();
        let has_loops = rows.iter().any(|row| self.lead_with_loops(row).is_some());
        let mut head = vec!["workload".to_owned()];
        head.extend(peers.iter().map(Peer::to_string));
        head.extend(has_loops.then(|| "with idle loops".to_owned()));
        head.extend(has_targets.then(|| "target".to_owned()));
        let lines = rows.iter().map(|row| {
            let best = row.best(|_| row.figures.len() > 1);
            let of = |&peer: &Peer| row.best(|it| it == peer).map(|shown| cell(shown, best));
            let mut cells = vec![Some(escaped(&row.title_with_unit()))];
            cells.extend(peers.iter().map(of));
            if has_loops {
                cells.push(self.lead_with_loops(row).as_ref().map(ratio));
            }
            if has_targets {
                let mark = |(most, ours): (f64, &Figure)| match ours.min <= most {
                    true => format!("{}, reached", figure(most)),
                    false => format!("{}, open", figure(most)),
                };
                cells.push(self.target(row).zip(row.ours()).map(mark));
            }
            let cells = cells.into_iter();
            cells
                .map(|cell| cell.unwrap_or_else(|| "–".to_owned()))
                .collect()
        });
        lines_of(&head, lines)
    }

    /// Formats figures that a peer has, too, as a table: Ganger's least, and its ratio to the least
    /// of the best peer. Empty without figures.
    pub(super) fn leads(&self, is_in: impl Fn(&Row<'_>) -> bool) -> String {
        let head = ["figure", "Ganger", "best peer"].map(str::to_owned);
        let rows = self.rows.iter().filter(|row| is_in(row));
        let line = |row: &Row<'_>| {
            let lead = row.lead()?;
            let title = escaped(&row.title_with_unit());
            Some(vec![title, figure(lead.ours.min), ratio(&lead)])
        };
        lines_of(&head, rows.filter_map(line))
    }

    /// Lists the missing figures, and why. A figure that is missing with and without idle loops is
    /// listed without the loops alone. Empty if all figures are there.
    pub(super) fn absent(&self) -> String {
        let absences = &self.results.absences;
        let mut reasons: Vec<(&Absence, Vec<String>)> = Vec::new();
        for absence in absences {
            let mut as_is = absence.clone();
            as_is.point.mode = Mode::AsIs;
            if absence.point.mode != Mode::AsIs && absences.contains(&as_is) {
                continue;
            }
            let Absence {
                workload, point, ..
            } = absence;
            let place = match *point == Point::of(self.workers, Mode::AsIs) {
                true => workload.to_string(),
                false => format!("{workload} ({point})"),
            };
            let is_same = |it: &Absence| {
                (it.peer, it.reason, &it.why) == (absence.peer, absence.reason, &absence.why)
            };
            match reasons.iter_mut().find(|it| is_same(it.0)) {
                Some((_, places)) => places.push(place),
                None => reasons.push((absence, vec![place])),
            }
        }
        let head = ["peer", "what", "why", "workloads"].map(str::to_owned);
        let lines = reasons.iter().map(|(it, places)| {
            let reason = it.reason.text().to_owned();
            vec![
                it.peer.to_string(),
                reason,
                escaped(&it.why),
                places.join(", "),
            ]
        });
        lines_of(&head, lines)
    }

    /// Returns in how many figures of the catalogue Ganger is ahead, for whole workloads and for
    /// queues, and where Ganger is furthest behind; and the peers without a figure.
    pub(super) fn standing(&self) -> String {
        let kinds: [(&str, Has); 2] = [
            ("whole workloads", |id| !id.is_queue()),
            ("queues", Id::is_queue),
        ];
        let mut parts = Vec::new();
        for (what, has) in kinds {
            let leads = leads_of(&self.rows, has);
            if leads.is_empty() {
                continue;
            }
            let mut part = format!("in {} of {} figures of {what}", ahead(&leads), leads.len());
            let with_loops = leads_of(&self.loops, has);
            if !with_loops.is_empty() {
                let _ = write!(
                    part,
                    " (with idle loops {} of {})",
                    ahead(&with_loops),
                    with_loops.len()
                );
            }
            parts.push(part);
        }
        let mode = match self.mode {
            Mode::AsIs => "",
            Mode::Loops => ", with idle loops",
        };
        let leads = leads_of(&self.rows, |_| true);
        let last = leads.iter().max_by(|a, b| a.1.times.total_cmp(&b.1.times));
        let mut text = match last {
            None => "Nothing was measured of both Ganger and a peer.\n".to_owned(),
            Some((row, lead)) => format!(
                "Least by least{mode}, Ganger is ahead of every peer {}; {} is {}: {}, {} {}.\n",
                parts.join(" and "),
                if lead.times > 1.0 {
                    "furthest behind"
                } else {
                    "the closest"
                },
                row.title(),
                with_unit(&figure(lead.ours.min), row.unit),
                lead.best.peer,
                with_unit(&figure(lead.best.min), row.unit),
            ),
        };
        let has_figure = |peer| self.results.figures.iter().any(|it| it.peer == peer);
        let out = self
            .results
            .absences
            .iter()
            .filter(|it| !has_figure(it.peer));
        let out: BTreeMap<_, _> = out.map(|it| (it.peer, it.reason.text())).collect();
        let out: Vec<_> = out
            .iter()
            .map(|(peer, why)| format!("{peer} ({why})"))
            .collect();
        if !out.is_empty() {
            let _ = writeln!(text, "Without {}.", out.join(", "));
        }
        text
    }
}

impl<'a> Row<'a> {
    pub(super) fn ours(&self) -> Option<&'a Figure> {
        self.best(|peer| peer == Peer::Ganger)
    }

    /// Returns the best figure of the peers for which `counts` holds.
    fn best(&self, counts: impl Fn(Peer) -> bool) -> Option<&'a Figure> {
        let peers = self
            .figures
            .iter()
            .copied()
            .filter(|figure| counts(figure.peer));
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
        let times = ours.min / best.min;
        is_comparable.then_some(Lead { ours, best, times })
    }

    /// Returns the catalogue's metric; none for further figures of queues.
    pub(super) fn metric(&self) -> Option<&'static Metric> {
        self.id.spec().metric(self.variant)
    }

    pub(super) fn title(&self) -> String {
        title(self.id, self.variant)
    }

    /// Returns the title with the unit, unless the title has the unit already behind a colon.
    fn title_with_unit(&self) -> String {
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

/// Figures of the same workload and variant together, in the order of the first of them.
fn rows(figures: &[Figure], point: Point) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for figure in figures.iter().filter(|figure| figure.point == point) {
        let (id, variant) = (figure.workload, figure.variant.as_str());
        match rows
            .iter_mut()
            .find(|row| (row.id, row.variant) == (id, variant))
        {
            Some(row) => row.figures.push(figure),
            None => rows.push(Row {
                id,
                variant,
                unit: &figure.unit,
                figures: vec![figure],
            }),
        }
    }
    for row in &mut rows {
        row.figures.sort_by_key(|figure| figure.peer);
    }
    rows.sort_by_key(|row| row.id);
    rows
}

/// Returns the lines over a quantity, each with two points or more.
fn plots(over: Curve, figures: &[Figure], workers: usize) -> Vec<Plot<'_>> {
    let mut plots: Vec<Plot<'_>> = Vec::new();
    let metrics = over.workloads().iter().flat_map(|&id| {
        let metrics = id.spec().metrics.iter();
        metrics.map(move |metric| (id, metric))
    });
    for (id, metric) in metrics {
        let mut lines = BTreeMap::<Peer, Vec<(f64, f64)>>::new();
        let is_its = |f: &&Figure| f.workload == id && f.variant == metric.variant;
        for figure in figures.iter().filter(is_its) {
            if let Some(x) = over.place(id, figure.point, figure.n, workers) {
                let line = lines.entry(figure.peer).or_default();
                line.push((x as f64, figure.min));
            }
        }
        let sort = |line: &mut Vec<(f64, f64)>| line.sort_by(|a, b| a.0.total_cmp(&b.0));
        lines.values_mut().for_each(sort);
        if lines.values().any(|line| line.len() > 1) {
            plots.push(Plot {
                id,
                variant: metric.variant,
                unit: metric.unit,
                over,
                lines,
            });
        }
    }
    plots
}

/// Returns a table; nothing without lines.
fn lines_of(head: &[String], lines: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = String::new();
    for line in lines {
        if text.is_empty() {
            text = format!("|{}|\n|{}\n", head.join("|"), "---|".repeat(head.len()));
        }
        let _ = writeln!(text, "|{}|", line.join("|"));
    }
    text
}

fn ratio(lead: &Lead<'_>) -> String {
    format!("{} {}", times(lead.times), lead.best.peer)
}

fn cell(shown: &Figure, best: Option<&Figure>) -> String {
    // Figures with the same text are equally good.
    let min = match figure(shown.min) {
        min if best.is_some_and(|best| figure(best.min) == min) => format!("**{min}**"),
        min => min,
    };
    match shown.ratio_to_ganger {
        Some(ratio) => format!("{min} ({})", times(1.0 / ratio)),
        None => min,
    }
}

/// Returns the leads in the figures that count.
fn leads_of<'a, 'b>(rows: &'b [Row<'a>], has: Has) -> Vec<(&'b Row<'a>, Lead<'a>)> {
    let rows = rows
        .iter()
        .filter(|row| has(row.id) && row.metric().is_some());
    rows.filter_map(|row| Some((row, row.lead()?))).collect()
}

fn ahead(leads: &[(&Row<'_>, Lead<'_>)]) -> usize {
    leads.iter().filter(|(_, lead)| lead.times <= 1.0).count()
}

/// Escapes text for a cell.
fn escaped(text: &str) -> String {
    let text = text.replace('|', "\\|").replace('<', "&lt;");
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::fixture;

    #[test]
    fn tables_have_as_many_cells_in_every_line() {
        let mut results = fixture::results();
        results.absences[0].why = "a | b\nc".to_owned();
        let text = View::of(&results).markdown();
        let mut columns = 0;
        for line in text.lines() {
            let count = line.replace("\\|", "").matches('|').count();
            if columns > 0 && count > 0 {
                assert_eq!(count, columns, "{line}");
            }
            columns = count;
        }
        for part in [
            "|W1 start a process from outside, ns|",
            "|push+pop, depth 8, ns|",
            "|a \\| b c|W1|",
            "78 GB & more|W8 (2 workers, 10000000 processes)|",
            "Without go (not installed).\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn the_best_is_bold_and_ratios_targets_and_loops_are_gangers() {
        let mut results = fixture::results();
        results.figures.retain(|it| {
            let is_shown = matches!(it.peer, Peer::Ganger | Peer::Tokio);
            it.workload == Id::W1 && is_shown && it.point.workers == 2
        });
        for it in &mut results.figures {
            it.min = match (it.peer, it.point.mode) {
                (Peer::Ganger, Mode::AsIs) => 5.0,
                (Peer::Ganger, Mode::Loops) => 30.0,
                _ => 20.0,
            };
            it.ratio_to_ganger = it.ratio_to_ganger.map(|_| 4.0);
        }
        let expected = "|workload|ganger|tokio|with idle loops|target|\n\
                        |---|---|---|---|---|\n\
                        |W1 start a process from outside, ns|**5.00**|20.0 (0.25×)|1.50× tokio|\
                        7.00, reached|\n";
        assert_eq!(View::of(&results).table(true, |_| true), expected);
        let standing = "Least by least, Ganger is ahead of every peer in 1 of 1 figures of whole \
                        workloads (with idle loops 0 of 1); the closest is W1 start a process from \
                        outside: 5.00 ns, tokio 20.0 ns.\n";
        assert!(View::of(&results).standing().starts_with(standing));
        results.figures.retain(|it| it.point.mode == Mode::Loops);
        let standing = "Least by least, with idle loops, Ganger is ahead of every peer in 0 of 1 \
                        figures of whole workloads; furthest behind is W1 start a process from \
                        outside: 30.0 ns, tokio 20.0 ns.\n";
        assert!(View::of(&results).standing().starts_with(standing));
        let nothing = Results::default();
        assert!(
            View::of(&nothing)
                .standing()
                .starts_with("Nothing was measured")
        );
    }

    #[test]
    fn curves_have_a_line_for_a_peer_in_order() {
        let results = fixture::results();
        let view = View::of(&results);
        let workers = view.curves.iter().find(|plot| plot.id == Id::W2).unwrap();
        let xs: Vec<_> = workers.lines[&Peer::Ganger]
            .iter()
            .map(|(x, _)| *x)
            .collect();
        assert_eq!(xs, [1.0, 2.0, 4.0, 8.0]);
        let of_processes = view
            .curves
            .iter()
            .filter(|plot| plot.over == Curve::Processes);
        assert_eq!(of_processes.count(), 3, "rss, spawn and wake");
    }
}
