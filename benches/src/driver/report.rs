//! The report as Markdown: how it stands, the figures, and what is not here.

use super::lines::{Absence, Figure, Reason};
use super::view::{Lead, Row, View};
use crate::text::{figure, times, with_unit};
use crate::whole::catalog::{Id, Peer};
use ganger_bench_options::mode::Mode;
use std::fmt::Write;

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
    let mut text = format!("|{}|\n|{}\n", head.join("|"), "---|".repeat(head.len()));
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
        let _ = writeln!(text, "|{}|", cells.join("|"));
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
        let _ = writeln!(text, "|{title}|{ours}|{}|", ratio(&lead));
    }
    match text.is_empty() {
        true => text,
        false => "|figure|Ganger|best peer|\n|---|---|---|\n".to_owned() + &text,
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
        let _ = writeln!(text, "|{peer}|{reason}|{why}|{places}|");
    }
    match text.is_empty() {
        true => text,
        false => "|peer|what|why|workloads|\n|---|---|---|---|\n".to_owned() + &text,
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
    use crate::driver::lines::Results;
    use crate::driver::plan::Curve;
    use crate::driver::view::Plot;

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
            "|W1 spawn_external, ns|",
            "|push+pop, depth 8, ns|",
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
        let expected = "|workload|ganger|tokio|with idle loops|target|\n\
                        |---|---|---|---|---|\n\
                        |W1 spawn_external, ns|**5.00**|20.0 (0.25×)|1.50× tokio|7.00, reached|\n";
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
            text.contains("78 GB & more|W8 (2 workers, 10000000 processes)|"),
            "{text}"
        );
        assert!(text.contains("|`go` is not on the PATH|W1|"), "{text}");
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
