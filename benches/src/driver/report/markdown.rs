//! The report as Markdown.

use super::modes::{cell, state};
use super::summary::{Line, Part, has_loops, lines, standing};
use super::view::{Row, View};
use crate::driver::lines::Figure;
use crate::text::{figure, short, times};
use crate::whole::catalog::{Id, Peer};
use std::fmt::Write;

/// All of it.
#[must_use]
pub fn markdown(view: &View<'_>) -> String {
    let mut text = String::from("# Ganger beside its peers\n\n");
    let _ = writeln!(text, "{}\n", platform(view));
    if view.machine.quick {
        text.push_str("**Small sizes: this shows that everything works, not how fast.**\n\n");
    }
    if view.machine.interrupted {
        text.push_str("**Stopped before all was measured.**\n\n");
    }
    let _ = write!(text, "{}\n\n{}", standing(view), summary(view));
    let whole = table(view, |row| !row.id.is_queue());
    if !whole.is_empty() {
        let _ = writeln!(text, "## Whole workloads\n\n{whole}");
    }
    if let Some(view) = view.with_loops() {
        let whole = table(&view, |row| !row.id.is_queue());
        let _ = writeln!(text, "## Whole workloads, with idle loops\n\n{whole}");
    }
    for plot in &view.curves {
        let _ = writeln!(text, "### {}, {}\n", plot.title(), plot.unit);
        text.push_str(&growth(plot));
    }
    for id in [Id::Deque, Id::Mailbox] {
        if view.rows_of(id).next().is_some() {
            let _ = writeln!(
                text,
                "## {}\n\n{}",
                id.spec().name,
                table(view, |row| row.id == id)
            );
        }
    }
    let absent = absent(view);
    if !absent.is_empty() {
        let _ = write!(text, "## What is not here\n\n{absent}");
    }
    text
}

/// Returns the line with the machine and the versions of the figures, and the state of the machine.
#[must_use]
pub fn platform(view: &View<'_>) -> String {
    let machine = view.machine;
    let versions: Vec<_> = machine
        .versions
        .iter()
        .map(|(name, v)| format!("{name} {v}"))
        .collect();
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

/// Formats figures as a table, a row a line and a peer a column. A cell has the minimum and, in
/// brackets, Ganger's figure divided by the peer's, pair by pair. The best of several is bold. With
/// figures of idle loops, the last column has Ganger's ratio to the best peer in that mode. Empty
/// without figures.
#[must_use]
pub fn table(view: &View<'_>, is_in: impl Fn(&Row<'_>) -> bool) -> String {
    let rows: Vec<&Row<'_>> = view.rows.iter().filter(|row| is_in(row)).collect();
    let mut peers: Vec<Peer> = rows
        .iter()
        .flat_map(|row| row.figures())
        .map(|f| f.peer)
        .collect();
    peers.sort_unstable();
    peers.dedup();
    let mut text = String::new();
    if rows.is_empty() {
        return text;
    }
    let has_loops = rows.iter().any(|row| view.row_with_loops(row).is_some());
    text.push_str("| workload |");
    for peer in &peers {
        let _ = write!(text, " {peer} |");
    }
    if has_loops {
        text.push_str(" with idle loops |");
    }
    let columns = peers.len() + usize::from(has_loops);
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(columns));
    for row in rows {
        let _ = write!(text, "| {} |", escaped(&row.with_unit(&row.title())));
        let best = row.figures().map(|f| f.min).reduce(f64::min);
        let best = best.filter(|_| row.figures().count() > 1);
        for peer in &peers {
            let shown = row.figures().find(|figure| figure.peer == *peer);
            let _ = write!(
                text,
                " {} |",
                shown.map_or_else(|| "–".to_owned(), |f| cell_of(f, best))
            );
        }
        if has_loops {
            let _ = write!(text, " {} |", cell(view.lead_with_loops(row).as_ref()));
        }
        text.push('\n');
    }
    text
}

/// Formats figures that a peer has, too, as a list, a row a line: Ganger's least, and its ratio to
/// the least of the best peer. Empty without figures.
#[must_use]
pub fn leads(view: &View<'_>, is_in: impl Fn(&Row<'_>) -> bool) -> String {
    let mut text = String::new();
    for row in view.rows.iter().filter(|row| is_in(row)) {
        let (Some(ours), lead @ Some(_)) = (row.ours, row.lead()) else {
            continue;
        };
        if text.is_empty() {
            text.push_str("| figure | Ganger | best peer |\n|---|---|---|\n");
        }
        let title = escaped(&row.with_unit(&row.title()));
        let ours = figure(ours.min);
        let _ = writeln!(text, "| {title} | {ours} | {} |", cell(lead.as_ref()));
    }
    text
}

fn cell_of(shown: &Figure, best: Option<f64>) -> String {
    // Figures that print the same are equally good.
    let min = match figure(shown.min) {
        min if Some(&min) == best.map(figure).as_ref() => format!("**{min}**"),
        min => min,
    };
    match shown.ratio_to_ganger {
        Some(ratio) => format!("{min} ({})", times(1.0 / ratio)),
        None => min,
    }
}

/// Lists each figure that counts, with the best peer's and the target.
fn summary(view: &View<'_>) -> String {
    let mut text = String::new();
    for part in Part::ALL {
        let lines = lines(view, part);
        if lines.is_empty() {
            continue;
        }
        let has_loops = has_loops(&lines);
        let (head, rule) = match has_loops {
            true => (" with idle loops |", "---|"),
            false => ("", ""),
        };
        let _ = writeln!(
            text,
            "| {} | Ganger is | Ganger | best peer | target |{head}\n|---|---|---|---|---|{rule}",
            part.heading()
        );
        for line in lines {
            let (title, ratio) = (escaped(&line.title), line.ratio());
            let Line {
                ours, best, target, ..
            } = line;
            let _ = write!(text, "| {title} | {ratio} | {ours} | {best} | {target} |");
            if let (true, Some((cell, _))) = (has_loops, line.with_loops) {
                let _ = write!(text, " {cell} |");
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

fn growth(plot: &super::view::Plot<'_>) -> String {
    let mut xs: Vec<f64> = plot
        .lines
        .iter()
        .flat_map(|(_, line)| line.iter().map(|p| p.0))
        .collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let mut text = format!("| {} |", plot.over.name());
    for (peer, _) in &plot.lines {
        let _ = write!(text, " {peer} |");
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(plot.lines.len()));
    for x in xs {
        let _ = write!(text, "| {} |", short(x));
        for (_, line) in &plot.lines {
            let point = line.iter().find(|point| point.0 == x);
            let _ = write!(
                text,
                " {} |",
                point.map_or_else(|| "–".to_owned(), |p| figure(p.1))
            );
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

/// Lists the missing figures, and why. Empty if all figures are there.
#[must_use]
pub fn absent(view: &View<'_>) -> String {
    let mut text = String::new();
    if view.absences.is_empty() {
        return text;
    }
    text.push_str("| peer | what | why | workloads |\n|---|---|---|---|\n");
    for (peer, reason, why, places) in view.reasons() {
        let _ = writeln!(
            text,
            "| {peer} | {} | {} | {} |",
            reason.text(),
            escaped(why),
            places.join(", ")
        );
    }
    text
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
    use ganger_bench_options::mode::Mode;

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
        assert!(text.contains("a \\| b c"));
    }

    #[test]
    fn the_best_is_bold_and_ratios_are_gangers() {
        let mut results = fixture::results();
        results
            .figures
            .retain(|f| f.workload == Id::W1 && f.workers == 2 && f.mode == Mode::AsIs);
        results
            .figures
            .retain(|f| matches!(f.peer, Peer::Ganger | Peer::Tokio));
        for (figure, min) in results.figures.iter_mut().zip([5.0, 20.0]) {
            figure.min = min;
            figure.ratio_to_ganger = figure.ratio_to_ganger.map(|_| 4.0);
        }
        let text = table(&View::of(&results), |_| true);
        let expected = "| workload | ganger | tokio |\n|---|---|---|\n\
                        | W1 spawn_external, ns | **5.00** | 20.0 (0.25×) |\n";
        assert_eq!(text, expected);
        results.figures.truncate(1);
        let alone = table(&View::of(&results), |_| true);
        assert!(alone.ends_with("| W1 spawn_external, ns | 5.00 |\n"));
    }
}
