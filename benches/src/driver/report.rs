//! The report as Markdown: which peer leads, by how much, and what is not here.

use super::lines::{Absence, Figure, Machine, Point, Reason, Results};
use super::plan::Curve;
use crate::text::{figure, times, with_unit};
use crate::whole::catalog::{Goal, Id, Metric, Peer};
use ganger_bench_options::mode::Mode;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A result as the report shows it.
#[derive(Clone, Debug)]
pub(super) struct View<'a> {
    machine: &'a Machine,
    /// How many workers there were where it is not a curve over them.
    workers: usize,
    /// As the machine is, if this mode has figures.
    mode: Mode,
    /// The compared figures, in the order of the runs; without the points of curves.
    pub(super) rows: Vec<Row<'a>>,
    /// The same with idle loops, where `rows` are without.
    loops: Vec<Row<'a>>,
    pub(super) curves: Vec<Plot<'a>>,
    absences: &'a [Absence],
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
        let goals = row.metric()?.goals.iter();
        goals.filter_map(most).reduce(f64::min)
    }

    /// Returns Ganger's lead over the best peer with idle loops.
    fn lead_with_loops(&self, row: &Row<'_>) -> Option<Lead<'a>> {
        let is_same = |other: &&Row<'_>| (other.id, other.variant) == (row.id, row.variant);
        self.loops.iter().find(is_same).and_then(Row::lead)
    }

    /// The place of a missing figure; `None` if it is missing as well without idle loops.
    fn place(&self, absence: &Absence) -> Option<String> {
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
    fn ours(&self) -> Option<&'a Figure> {
        self.best(|peer| peer == Peer::Ganger)
    }

    /// Returns the best of the peers that count.
    fn best(&self, counts: impl Fn(Peer) -> bool) -> Option<&'a Figure> {
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

/// All of it, but for the charts.
pub(super) fn markdown(view: &View<'_>) -> String {
    let mut text = format!("# Ganger beside its peers\n\n{}\n\n", platform(view));
    if view.machine.quick {
        text.push_str("**Small sizes: this shows that everything works, not how fast.**\n\n");
    }
    if view.machine.interrupted {
        text.push_str("**Stopped before all was measured.**\n\n");
    }
    let _ = writeln!(text, "{}\n", standing(view));
    let parts: [(&str, Has); 4] = [
        ("Whole workloads", |id| {
            !id.is_queue() && !id.is_of_cluster()
        }),
        ("Cluster", Id::is_of_cluster),
        ("Deque", |id| id == Id::Deque),
        ("Mailbox", |id| id == Id::Mailbox),
    ];
    for (heading, has) in parts {
        let table = table(view, true, |row| has(row.id));
        if !table.is_empty() {
            let _ = writeln!(text, "## {heading}\n\n{table}");
        }
    }
    match absent(view) {
        absent if absent.is_empty() => text,
        absent => text + "## What is not here\n\n" + &absent,
    }
}

/// Returns the line with the machine and the versions of the figures, and the state of the machine.
pub(super) fn platform(view: &View<'_>) -> String {
    let machine = view.machine;
    let versions = machine.versions.iter();
    let versions: Vec<_> = versions.map(|(name, v)| format!("{name} {v}")).collect();
    format!(
        "{}, {} cores, {}, governor {}; {} workers; {}; allocator: {}; {}; commit {}; {} UTC; \
         `{}`. {}",
        escaped(&machine.cpu),
        machine.cores,
        machine.kernel,
        machine.governor,
        view.workers,
        machine.rustc,
        machine.allocator,
        versions.join(", "),
        machine.commit,
        machine.date,
        machine.command,
        escaped(&state(view)),
    )
}

/// Describes the state of the machine, in a sentence or two.
fn state(view: &View<'_>) -> String {
    let modes = match (view.mode, view.loops.is_empty()) {
        (Mode::AsIs, true) => "Measured as the machine is.",
        (Mode::AsIs, false) => {
            "Measured as the machine is, and whole workloads with an idle-priority loop on every \
             processor, too."
        }
        (Mode::Loops, _) => "Measured with an idle-priority loop on every processor.",
    };
    let calm = match &view.machine.calm {
        Some(calm) => calm.text(),
        None => "How busy others kept the machine is not known.".to_owned(),
    };
    let mut absences = view.absences.iter();
    match absences.find(|it| it.reason == Reason::NoMode) {
        Some(Absence { point, why, .. }) => {
            format!("{modes} Not {}: {why}. {calm}", point.mode.text())
        }
        None => format!("{modes} {calm}"),
    }
}

/// Formats figures as a table, a row a line and a peer a column. A cell has the minimum and, in
/// brackets, Ganger's figure divided by the peer's, pair by pair. The best of several is bold. With
/// figures of idle loops, a column has Ganger's ratio to the best peer in that mode. Empty without
/// figures.
pub(super) fn table(
    view: &View<'_>,
    has_targets: bool,
    is_in: impl Fn(&Row<'_>) -> bool,
) -> String {
    let rows: Vec<&Row<'_>> = view.rows.iter().filter(|row| is_in(row)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let figures = rows.iter().flat_map(|row| &row.figures);
    let mut peers: Vec<Peer> = figures.map(|figure| figure.peer).collect();
    peers.sort_unstable();
    peers.dedup();
    let has_loops = rows.iter().any(|row| view.lead_with_loops(row).is_some());
    let mut head = vec!["workload".to_owned()];
    head.extend(peers.iter().map(Peer::to_string));
    head.extend(has_loops.then(|| "with idle loops".to_owned()));
    head.extend(has_targets.then(|| "target".to_owned()));
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let mut cells = vec![escaped(&row.title_with_unit())];
        let best = row.best(|_| row.figures.len() > 1);
        cells.extend(peers.iter().map(|&peer| {
            let shown = row.best(|it| it == peer);
            shown.map_or_else(dash, |shown| cell(shown, best))
        }));
        if has_loops {
            let lead = view.lead_with_loops(row);
            cells.push(lead.map_or_else(dash, |lead| ratio(&lead)));
        }
        if has_targets {
            cells.push(view.target(row).zip(row.ours()).map_or_else(dash, target));
        }
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

/// Formats figures that a peer has, too, as a list, a row a line: Ganger's least, and its ratio to
/// the least of the best peer. Empty without figures.
pub(super) fn leads(view: &View<'_>, is_in: impl Fn(&Row<'_>) -> bool) -> String {
    let mut text = String::new();
    for row in view.rows.iter().filter(|row| is_in(row)) {
        let (Some(ours), Some(lead)) = (row.ours(), row.lead()) else {
            continue;
        };
        let (title, ours) = (escaped(&row.title_with_unit()), figure(ours.min));
        let _ = writeln!(text, "| {title} | {ours} | {} |", ratio(&lead));
    }
    match text.is_empty() {
        true => text,
        false => "| figure | Ganger | best peer |\n|---|---|---|\n".to_owned() + &text,
    }
}

fn ratio(lead: &Lead<'_>) -> String {
    format!("{} {}", times(lead.times), lead.best.peer)
}

fn dash() -> String {
    "–".to_owned()
}

fn target((most, ours): (f64, &Figure)) -> String {
    let mark = if ours.min <= most { "reached" } else { "open" };
    format!("{}, {mark}", figure(most))
}

fn cell(shown: &Figure, best: Option<&Figure>) -> String {
    // Figures that print the same are equally good.
    let min = match figure(shown.min) {
        min if best.is_some_and(|best| figure(best.min) == min) => format!("**{min}**"),
        min => min,
    };
    match shown.ratio_to_ganger {
        Some(ratio) => format!("{min} ({})", times(1.0 / ratio)),
        None => min,
    }
}

/// Lists the missing figures, and why. Empty if all figures are there.
pub(super) fn absent(view: &View<'_>) -> String {
    let mut reasons: Vec<(&Absence, Vec<String>)> = Vec::new();
    for absence in view.absences {
        let Some(place) = view.place(absence) else {
            continue;
        };
        let key = |it: &Absence| (it.peer, it.reason, it.why.clone());
        match reasons.iter_mut().find(|it| key(it.0) == key(absence)) {
            Some((_, places)) => places.push(place),
            None => reasons.push((absence, vec![place])),
        }
    }
    let mut text = String::new();
    for (
        Absence {
            peer, reason, why, ..
        },
        places,
    ) in &reasons
    {
        let (reason, why, places) = (reason.text(), escaped(why), places.join(", "));
        let _ = writeln!(text, "| {peer} | {reason} | {why} | {places} |");
    }
    match text.is_empty() {
        true => text,
        false => "| peer | what | why | workloads |\n|---|---|---|---|\n".to_owned() + &text,
    }
}

/// The peers without a column in any table, because they did not run.
pub(super) fn without(view: &View<'_>) -> String {
    let figures = view.rows.iter().flat_map(|row| &row.figures);
    let has_column = |peer| figures.clone().any(|figure| figure.peer == peer);
    let mut out: Vec<_> = view.absences.iter().collect();
    out.retain(|absence| !has_column(absence.peer));
    out.sort_by_key(|absence| absence.peer);
    out.dedup_by_key(|absence| absence.peer);
    let out = out
        .iter()
        .map(|it| format!("{} ({})", it.peer, it.reason.text()));
    match out.collect::<Vec<_>>() {
        out if out.is_empty() => String::new(),
        out => format!("Without {}.\n", out.join(", ")),
    }
}

/// Whether a part of the report has a workload.
type Has = fn(Id) -> bool;

/// In how many figures of the catalogue Ganger is ahead: a line for all, for whole workloads, and
/// for queues.
pub(super) fn standing(view: &View<'_>) -> String {
    let parts: [(&str, Has); 3] = [
        ("whole workloads and queues", |_| true),
        ("whole workloads", |id| !id.is_queue()),
        ("queues", Id::is_queue),
    ];
    let mut sentences = Vec::new();
    for (start, rows) in [
        ("Ahead", &view.rows),
        ("With idle loops, ahead", &view.loops),
    ] {
        let start = match view.mode {
            Mode::AsIs => start,
            Mode::Loops => "With idle loops, ahead",
        };
        let mut of_mode = parts
            .map(|(what, has)| sentence(start, what, rows, has))
            .to_vec();
        of_mode.retain(Option::is_some);
        // With a single kind, the standing in all is the same.
        if of_mode.len() == 2 {
            of_mode.remove(0);
        }
        sentences.extend(of_mode.into_iter().flatten());
    }
    match sentences.is_empty() {
        true => "Nothing was measured of both Ganger and a peer.".to_owned(),
        false => sentences.join("\n"),
    }
}

fn sentence(start: &str, what: &str, rows: &[Row<'_>], has: Has) -> Option<String> {
    let rows = rows
        .iter()
        .filter(|row| has(row.id) && row.metric().is_some());
    let leads: Vec<_> = rows.filter_map(Row::lead).collect();
    let ahead = leads.iter().filter(|lead| lead.times <= 1.0).count();
    let worst = leads.iter().max_by(|a, b| a.times.total_cmp(&b.times))?;
    let Lead {
        id, variant, best, ..
    } = worst;
    Some(format!(
        "{start} of every peer in {ahead} of {} figures of {what}; {}: {id} {variant}, {} {}'s {}.",
        leads.len(),
        if worst.times > 1.0 {
            "worst"
        } else {
            "closest"
        },
        times(worst.times),
        best.peer,
        with_unit(&figure(best.min), &best.unit),
    ))
}

/// Text in a cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::fixture;

    #[test]
    fn tables_have_as_many_cells_in_every_line() {
        let mut results = fixture::results();
        results.absences[0].why = "a | b\nc".to_owned();
        let text = markdown(&View::of(&results));
        let mut columns = 0;
        for line in text.lines() {
            let count = line.replace("\\|", "").matches('|').count();
            if columns > 0 && count > 0 {
                assert_eq!(count, columns, "{line}");
            }
            columns = count;
        }
        for part in [
            "a \\| b c",
            "| W1 spawn_external, ns |",
            "| push+pop, depth 8, ns |",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    /// Results of W1, W5 and the deque with these minima.
    fn some(min: fn(Id, Peer, Mode) -> f64) -> Results {
        let mut results = fixture::results();
        let is_some = |id| matches!(id, Id::W1 | Id::W5 | Id::Deque);
        results
            .figures
            .retain(|f| is_some(f.workload) && f.point.workers == 2);
        for figure in &mut results.figures {
            figure.min = min(figure.workload, figure.peer, figure.point.mode);
        }
        results
    }

    #[test]
    fn the_best_is_bold_and_ratios_targets_and_loops_are_gangers() {
        let mut results = some(|_, peer, mode| match (peer, mode) {
            (Peer::Ganger, Mode::AsIs) => 5.0,
            (Peer::Ganger, Mode::Loops) => 30.0,
            _ => 20.0,
        });
        let is_shown = |peer| matches!(peer, Peer::Ganger | Peer::Tokio);
        results
            .figures
            .retain(|f| f.workload == Id::W1 && is_shown(f.peer));
        for figure in &mut results.figures {
            figure.ratio_to_ganger = figure.ratio_to_ganger.map(|_| 4.0);
        }
        let text = table(&View::of(&results), true, |_| true);
        let expected = "| workload | ganger | tokio | with idle loops | target |\n\
                        |---|---|---|---|---|\n\
                        | W1 spawn_external, ns | **5.00** | 20.0 (0.25×) | 1.50× tokio \
                        | 7.00, reached |\n";
        assert_eq!(text, expected);
        results.figures.retain(|f| f.point.mode == Mode::Loops);
        let view = View::of(&results);
        assert!(standing(&view).starts_with("With idle loops, ahead of every peer in 0 of 1"));
        assert!(state(&view).starts_with("Measured with an idle-priority loop"));
    }

    #[test]
    fn the_standing_is_counted_against_the_best_peer() {
        let mut results = some(|id, peer, _| match (id, peer) {
            (Id::W1, Peer::Ganger) => 30.0,
            (Id::W1, Peer::Tokio) => 20.0,
            (Id::W5, Peer::Ganger) => 10.0,
            _ => 40.0,
        });
        results.figures.retain(|f| f.point.mode == Mode::AsIs);
        let view = View::of(&results);
        let queues = Id::Deque.spec().metrics.len();
        let expected = format!(
            "Ahead of every peer in {} of {} figures of whole workloads and queues; worst: W1 \
             time, 1.50× tokio's 20.0 ns.\nAhead of every peer in 1 of 2 figures of whole \
             workloads; worst: W1 time, 1.50× tokio's 20.0 ns.\nAhead of every peer in \
             {queues} of {queues} figures of queues; closest: deque fib, a task a call: ms, \
             1.00× crossbeam-deque's 40.0 ms.",
            queues + 1,
            queues + 2,
        );
        assert_eq!(standing(&view), expected);
        let targets: Vec<_> = view
            .rows
            .iter()
            .filter_map(|row| view.target(row))
            .collect();
        // 0.9 times the best is 18; 0.35 times tokio is 7. Half of W5's best is 20.
        assert!((targets[0] - 7.0).abs() < 1e-9 && (targets[1] - 20.0).abs() < 1e-9);
        assert!(standing(&View::of(&Results::default())).starts_with("Nothing was measured"));
    }

    #[test]
    fn an_absence_is_said_once_with_its_place() {
        let results = fixture::results();
        let view = View::of(&results);
        let text = absent(&view);
        assert_eq!(text.lines().count(), 2 + 3, "{text}");
        assert!(
            text.contains("78 GB & more | W8 (2 workers, 10000000 processes) |"),
            "{text}"
        );
        assert!(text.contains("| `go` is not on the PATH | W1 |"), "{text}");
        assert_eq!(without(&view), "Without go (not installed).\n");
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
        let of_processes = |p: &&Plot<'_>| p.over == Curve::Processes;
        assert_eq!(
            view.curves.iter().filter(of_processes).count(),
            3,
            "rss, spawn and wake"
        );
    }
}
