//! The page: a single file, light or dark as the reader's system is, without scripts and without
//! anything from outside.

use super::bars::bars;
use super::curves::curve;
use super::histogram::histogram;
use super::markup::Escaped;
use super::modes::state;
use super::summary::{Line, Part, has_loops, lines, standings};
use super::view::{Row, Standing, View};
use crate::driver::text::{figure, grouped, times};
use crate::whole::catalog::Id;
use ganger_bench_options::mode::Mode;
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

/// How to read bars.
const KEY: &str = "<p class=\"soft\">A bar is the minimum, the thin line reaches to the maximum, \
                   the tick is the median. On the right: how many times Ganger's figure it is, \
                   pair by pair.</p>\n";

/// The whole page.
#[must_use]
pub fn html(view: &View<'_>) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Ganger beside its peers</title>\n<style>\n{STYLE}</style></head><body>\n"
    );
    head(&mut page, view);
    summary(&mut page, view);
    workloads(&mut page, view);
    growth(&mut page, view);
    latencies(&mut page, view);
    queues(&mut page, view);
    absences(&mut page, view);
    machine(&mut page, view);
    page.push_str("</body></html>\n");
    page
}

fn head(page: &mut String, view: &View<'_>) {
    let machine = view.machine;
    let _ = write!(
        page,
        "<header><h1>Ganger beside its peers</h1>\n<p class=\"soft\">{}, {} cores, {}; {} workers; \
         {} UTC</p>\n",
        Escaped(&machine.cpu),
        machine.cores,
        Escaped(&machine.kernel),
        view.workers,
        Escaped(&machine.date),
    );
    let class = match machine.calm {
        Some(calm) if calm.busy > 0 => "warn",
        _ => "soft",
    };
    let _ = writeln!(page, "<p class=\"{class}\">{}</p>", Escaped(&state(view)));
    if machine.quick {
        page.push_str(
            "<p class=\"warn\">Small sizes: this shows that everything works, not how fast.</p>\n",
        );
    }
    if machine.interrupted {
        page.push_str("<p class=\"warn\">Stopped before all was measured.</p>\n");
    }
    page.push_str("<nav><a href=\"#summary\">Summary</a>");
    let has = |of: fn(Id) -> bool| view.ids().into_iter().any(of);
    let sections = [
        ("whole", "Workloads", has(|id| !id.is_queue())),
        ("growth", "Growth", !view.curves.is_empty()),
        (
            "latencies",
            "Latencies",
            view.rows.iter().any(|row| histogram(row).is_some()),
        ),
        ("queues", "Queues", has(Id::is_queue)),
        ("absent", "What is not here", !view.absences.is_empty()),
        ("machine", "Machine and method", true),
    ];
    for (id, name, _) in sections.into_iter().filter(|section| section.2) {
        let _ = write!(page, "<a href=\"#{id}\">{name}</a>");
    }
    page.push_str("</nav></header>\n");
}

fn summary(page: &mut String, view: &View<'_>) {
    page.push_str("<section id=\"summary\"><h2>Summary</h2><div class=\"tiles\">\n");
    for (of_what, standing) in standings(view) {
        tile(page, of_what, &standing);
    }
    let with_loops = view.with_loops();
    for (of_what, standing) in with_loops.iter().flat_map(standings) {
        tile(page, &format!("{of_what}, with idle loops"), &standing);
    }
    page.push_str(
        "</div>\n<p class=\"soft\">Of every figure, less is better. The minimum of all \
         repetitions. Below 1 ×, Ganger is ahead.</p>\n",
    );
    for part in Part::ALL {
        let lines = lines(view, part);
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(
            page,
            "<div class=\"card scroll\"><table class=\"standing\"><thead><tr><th>{}</th>\
             <th>Ganger is</th><th>Ganger</th><th>best \
             peer</th><th>target</th>{}</tr></thead><tbody>",
            part.heading(),
            if has_loops(&lines) {
                "<th>with idle loops</th>"
            } else {
                ""
            },
        );
        let has_loops = has_loops(&lines);
        for line in lines {
            summary_line(page, &line, has_loops);
        }
        page.push_str("</tbody></table></div>\n");
    }
    page.push_str("</section>\n");
}

fn tile(page: &mut String, of_what: &str, standing: &Standing<'_>) {
    let Standing { ahead, of, worst } = standing;
    let _ = write!(
        page,
        "<div class=\"tile\"><b>{ahead} of {of}</b>figures of {of_what}: ahead of every peer."
    );
    if let Some(lead) = worst {
        let _ = write!(
            page,
            " <span class=\"soft\">The {}: {} {}, {} {}.</span>",
            lead.word(),
            lead.id,
            Escaped(lead.variant),
            times(lead.times),
            lead.best.peer,
        );
    }
    page.push_str("</div>\n");
}

fn summary_line(page: &mut String, line: &Line, has_loops: bool) {
    let class = |times| match times {
        Some(times) if times <= 1.0 => "good",
        Some(_) => "bad",
        None => "",
    };
    let _ = write!(
        page,
        "<tr><td>{}</td><td class=\"{}\">{}</td><td>{}</td><td>{}</td><td class=\"{}\">{}</td>",
        Escaped(&line.title),
        class(line.times),
        line.ratio(),
        Escaped(&line.ours),
        Escaped(&line.best),
        if line.is_reached { "good" } else { "" },
        Escaped(&line.target),
    );
    if let (true, Some((cell, times))) = (has_loops, &line.with_loops) {
        let _ = write!(
            page,
            "<td class=\"{}\">{}</td>",
            class(*times),
            Escaped(cell)
        );
    }
    page.push_str("</tr>\n");
}

fn workloads(page: &mut String, view: &View<'_>) {
    let ids: Vec<Id> = view.ids().into_iter().filter(|id| !id.is_queue()).collect();
    if ids.is_empty() {
        return;
    }
    let _ = writeln!(
        page,
        "<section id=\"whole\"><h2>Whole workloads</h2>\n{KEY}<div class=\"grid2\">"
    );
    for id in ids {
        let spec = id.spec();
        let rows: Vec<_> = view.rows_of(id).collect();
        let n = rows
            .iter()
            .flat_map(|row| row.figures())
            .map(|figure| figure.n)
            .max();
        let _ = write!(
            page,
            "<div class=\"card\" id=\"{id}\"><h3>{id} {}</h3><p class=\"soft\">{}. {} {}.</p>",
            spec.name,
            Escaped(spec.what),
            grouped(n.unwrap_or(0)),
            spec.of,
        );
        for row in &rows {
            if rows.len() > 1 {
                let _ = write!(page, "<p class=\"variant\">{}</p>", Escaped(row.variant));
            }
            page.push_str(&bars(row));
        }
        let with_loops = rows.iter().filter_map(|row| view.row_with_loops(row));
        let all: Vec<_> = rows.iter().copied().chain(with_loops).collect();
        table(page, &all);
        page.push_str("</div>\n");
    }
    page.push_str("</div></section>\n");
}

fn queues(page: &mut String, view: &View<'_>) {
    let ids: Vec<Id> = view.ids().into_iter().filter(|id| id.is_queue()).collect();
    if ids.is_empty() {
        return;
    }
    let _ = writeln!(page, "<section id=\"queues\"><h2>Queues</h2>\n{KEY}");
    for id in ids {
        let spec = id.spec();
        let rows: Vec<_> = view.rows_of(id).collect();
        let _ = write!(
            page,
            "<h3>{}</h3><p>{}.</p><div class=\"grid2\">",
            spec.name,
            Escaped(spec.what)
        );
        // A figure of a single peer, or a figure that does not count, is in the table only.
        let is_drawn = |row: &&&Row<'_>| row.metric().is_some() && row.figures().count() > 1;
        for row in rows.iter().filter(is_drawn) {
            let _ = write!(
                page,
                "<div class=\"card\"><h3>{}</h3>",
                Escaped(row.variant)
            );
            page.push_str(&bars(row));
            page.push_str("</div>");
        }
        page.push_str("</div>\n");
        table(page, &rows);
    }
    page.push_str("</section>\n");
}

/// All figures of some rows.
fn table(page: &mut String, rows: &[&Row<'_>]) {
    page.push_str(
        "<details><summary>All figures</summary><div \
         class=\"scroll\"><table><thead><tr><th>peer</th>\
         <th class=\"text\">figure</th><th>min</th><th>median</th><th>max</th><th>times \
         Ganger's</th>\
         <th>reps</th></tr></thead><tbody>\n",
    );
    for row in rows {
        for shown in row.figures() {
            let ratio = shown.ratio_to_ganger.map_or_else(|| "–".to_owned(), times);
            let label = row.with_unit(row.variant);
            let label = match shown.mode {
                Mode::AsIs => label,
                Mode::Loops => format!("{label}, {}", shown.mode.text()),
            };
            let _ = writeln!(
                page,
                "<tr><td>{}</td><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{}</td>\
                 <td>{ratio}</td><td>{}</td></tr>",
                shown.peer,
                Escaped(&label),
                figure(shown.min),
                figure(shown.median),
                figure(shown.max),
                shown.reps,
            );
        }
    }
    page.push_str("</tbody></table></div></details>\n");
}

fn growth(page: &mut String, view: &View<'_>) {
    if view.curves.is_empty() {
        return;
    }
    page.push_str(
        "<section id=\"growth\"><h2>Growth</h2>\n<p class=\"soft\">Both axes are logarithmic; less \
         is better. A curve over workers that stays low beyond the number of cores does not \
         collapse; \
         one over processes should rise only as caches overflow.</p><div class=\"grid2\">\n",
    );
    for plot in &view.curves {
        page.push_str(&curve(plot));
    }
    page.push_str("</div></section>\n");
}

fn latencies(page: &mut String, view: &View<'_>) {
    let histograms: Vec<_> = view.rows.iter().filter_map(histogram).collect();
    if histograms.is_empty() {
        return;
    }
    page.push_str(
        "<section id=\"latencies\"><h2>Latencies</h2>\n<p class=\"soft\">How often a latency was \
         in a column, beside the most frequent; dashed: the median and the 99th percentile.</p>\
         <div class=\"grid2\">\n",
    );
    histograms
        .iter()
        .for_each(|histogram| page.push_str(histogram));
    page.push_str("</div></section>\n");
}

fn absences(page: &mut String, view: &View<'_>) {
    if view.absences.is_empty() {
        return;
    }
    page.push_str(
        "<section id=\"absent\"><h2>What is not here</h2><div class=\"card \
         scroll\"><table><thead><tr>\
         <th>peer</th><th class=\"text\">what</th><th class=\"text\">why</th>\
         <th class=\"text\">workloads</th></tr></thead><tbody>\n",
    );
    for (peer, reason, why, places) in view.reasons() {
        let _ = writeln!(
            page,
            "<tr><td>{peer}</td><td class=\"text\">{}</td><td class=\"text\">{}</td>\
             <td class=\"text\">{}</td></tr>",
            reason.text(),
            Escaped(why),
            Escaped(&places.join(", ")),
        );
    }
    page.push_str("</tbody></table></div></section>\n");
}

fn machine(page: &mut String, view: &View<'_>) {
    let machine = view.machine;
    let versions: Vec<_> = machine
        .versions
        .iter()
        .map(|(name, v)| format!("{name} {v}"))
        .collect();
    let cores = machine.cores.to_string();
    let facts = [
        ("processor", machine.cpu.as_str()),
        ("cores", &cores),
        ("system", &machine.kernel),
        ("governor", &machine.governor),
        ("compiler", &machine.rustc),
        ("allocator", &machine.allocator),
        ("commit", &machine.commit),
        ("date", &machine.date),
        ("command", &machine.command),
        ("versions", &versions.join(", ")),
    ];
    page.push_str(
        "<section id=\"machine\"><h2>Machine and method</h2>\n<p>Each run is a process of its own, \
         warmed up before it measures. The peers take turns within each repetition, so that what \
         disturbs the machine disturbs all alike. Compare minima; where a median is far above, \
         something else was running. A virtual processor that halts is taken for one in use, and \
         where threads run is left to chance; a loop of idle priority on each keeps them from \
         halting, and takes no time from the workloads: hence the figures with idle loops.</p><div \
         class=\"card scroll\"><table><tbody>\n",
    );
    for (name, fact) in facts {
        let _ = writeln!(
            page,
            "<tr><td>{name}</td><td class=\"text\">{}</td></tr>",
            Escaped(fact)
        );
    }
    page.push_str("</tbody></table></div></section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::fixture;
    use crate::driver::lines::{Figure, Results};
    use crate::driver::report::markup::unbalanced;

    #[test]
    fn the_page_is_whole_and_needs_nothing_from_outside() {
        let results = fixture::results();
        let page = html(&View::of(&results));
        assert_eq!(unbalanced(&page), None);
        for outside in ["http", "//", "url(", "src=", "<script", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("A &lt;fast&gt; processor &amp; more"));
        for &id in Id::ALL {
            assert!(page.contains(id.spec().name), "{id}");
        }
        for absence in &results.absences {
            assert!(
                page.contains(&Escaped(&absence.why).to_string()),
                "{absence:?}"
            );
        }
        let links = page
            .split("href=\"#")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap());
        for link in links {
            assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
        }
    }

    #[test]
    fn figures_of_queues_that_do_not_count_are_in_the_table_alone() {
        let results = fixture::results();
        let page = html(&View::of(&results));
        let is_drawn = |variant: &str| page.contains(&format!("<h3>{variant}</h3>"));
        assert!(is_drawn("push+pop, depth 8"));
        assert!(!is_drawn(fixture::OTHER.0));
        assert!(page.contains(fixture::OTHER.0));
    }

    #[test]
    fn targets_are_in_a_column_of_whole_workloads_and_of_queues() {
        let results = fixture::results();
        let view = View::of(&results);
        let page = html(&view);
        for part in Part::ALL {
            let of_part: Vec<_> = lines(&view, part);
            assert!(of_part.iter().any(|line| line.target != "–"), "{part:?}");
            assert!(page.contains(&format!("<th>{}</th>", part.heading())));
            for line in of_part {
                let class = if line.is_reached { "good" } else { "" };
                let cell = format!("<td class=\"{class}\">{}</td>", line.target);
                assert!(page.contains(&cell), "{line:?}");
            }
        }
    }

    #[test]
    fn whatever_is_there_makes_a_whole_page() {
        let all = fixture::results();
        let only = |is_in: fn(&Figure) -> bool| {
            let mut results = all.clone();
            results.figures.retain(is_in);
            results
        };
        for results in [
            Results::default(),
            only(|figure| figure.workload == Id::Deque),
            only(|figure| figure.workload == Id::W8),
            only(|figure| figure.peer != crate::whole::catalog::Peer::Ganger),
            only(|figure| figure.workers == 8),
        ] {
            let page = html(&View::of(&results));
            assert_eq!(unbalanced(&page), None);
        }
    }
}
