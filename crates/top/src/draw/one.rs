//! A single process.

use super::processes::{self, sparkline};
use super::theme::Theme;
use crate::app::App;
use crate::measure::{Row, SPARKS};
use crate::text::{self, count, percent, rate, time};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// The width of the names.
const NAMES: usize = 12;

struct Lines {
    lines: Vec<Line<'static>>,
}

impl Lines {
    fn add(&mut self, name: &str, value: impl AsRef<str>) {
        self.add_in(name, value, Style::new());
    }

    fn add_in(&mut self, name: &str, value: impl AsRef<str>, style: Style) {
        let value = text::clean(value.as_ref()).into_owned();
        let name = Span::raw(format!("{name:NAMES$} "));
        self.lines
            .push(Line::from(vec![name, Span::styled(value, style)]));
    }
}

pub(super) fn lines(app: &App, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Lines { lines: Vec::new() };
    let Some((_, pid)) = &app.one else {
        return lines.lines;
    };
    lines.add_in("PID", pid, theme.strong());
    if app.has_ended {
        lines.add_in(
            "state",
            "ended; below is the last that was seen",
            theme.warning(),
        );
    }
    let Some(row) = &app.single else {
        return lines.lines;
    };
    let process = &row.process;
    if !app.has_ended {
        lines.add("state", processes::state(process, false, theme).text());
    }
    for warning in &row.warnings {
        lines.add_in("warning", warning.sentence(), theme.bad());
    }
    lines.add("type", format!("{}, {}", process.type_name, process.method));
    let or_none = |text: Option<&str>| text.unwrap_or("none").to_owned();
    let names = process.names.join(", ");
    lines.add("names", or_none(Some(&*names).filter(|it| !it.is_empty())));
    lines.add("label", or_none(process.label.as_deref()));
    lines.add("parent", or_none(process.parent.as_deref()));
    let age = process.counts.as_ref().map(|it| time(it.age_ns));
    let age = age.as_deref().unwrap_or("not counted");
    let bytes = process.bytes.map(|it| format!(", {} bytes", count(it)));
    let bytes = bytes.unwrap_or_default();
    lines.add(
        "age",
        format!("{age}, restarts {}{bytes}", process.incarnation),
    );
    for (name, is_so) in [
        ("asked to finish", process.is_cancelled),
        ("takes no further step", process.is_terminating),
    ] {
        if is_so {
            lines.add_in("", name, theme.warning());
        }
    }
    numbers(row, &mut lines);
    for wait in &process.waits {
        let name = wait.name.as_deref().unwrap_or("a command");
        let since = time(wait.since_ns);
        lines.add(
            "waits for",
            format!("{name} (tag {}) since {since}", wait.tag),
        );
    }
    let number = |it: Option<u64>| it.map_or_else(|| "not known".to_owned(), count);
    let (monitors, watched_by) = (number(process.monitors), number(process.watched_by));
    let pids = |all: &[String]| match all {
        [] => String::new(),
        all => format!(" ({})", all.join(" ")),
    };
    let (of, by) = (pids(&process.monitored), pids(&process.watchers));
    lines.add(
        "monitors",
        format!("{monitors}{of}, watched by {watched_by}{by}"),
    );
    if let Some(restarts) = process.restarts {
        let cause = process.last_cause.as_deref();
        let cause = cause.map(|it| format!(", the last time: {it}"));
        let cause = cause.unwrap_or_default();
        lines.add("restarted", format!("{} times{cause}", count(restarts)));
    }
    for link in &process.links {
        lines.add("linked to", link);
    }
    lines.lines
}

fn numbers(row: &Row, lines: &mut Lines) {
    let process = &row.process;
    let Some(counts) = &process.counts else {
        lines.add(
            "counts",
            "none: the program builds its scheduler without Builder::observe",
        );
        lines.add("left", count(process.left));
        return;
    };
    let busy = row.busy.map(percent);
    let busy = busy.map(|it| format!(", {it}% now")).unwrap_or_default();
    lines.add("mailbox", count(counts.waiting));
    lines.add("busy", format!("{} in all{busy}", time(counts.busy_ns)));
    lines.add("longest step", time(counts.longest_step_ns));
    let (turns, steps, events) = (counts.turns, counts.steps, counts.events);
    lines.add("turns", format!("{}, steps {}", count(turns), count(steps)));
    let messages = row.messages.map(rate);
    let messages = messages
        .map(|it| format!(", {it}/s now"))
        .unwrap_or_default();
    lines.add("messages", format!("{}{messages}", count(events)));
    lines.add("", sparkline(&row.sparks, SPARKS));
}
