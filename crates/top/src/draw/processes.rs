//! The table of processes.

use super::grid::{Cell, Column};
use super::theme::Theme;
use crate::app::App;
use crate::measure::{Row, SPARKS};
use crate::text::{count, percent, rate, short_type, time};
use ganger_observe::api::{Process, State};
use ratatui::style::Style;

/// In the order of [`SORTS`](crate::app::SORTS), and then the columns without an order.
pub(super) const COLUMNS: [Column; 12] = [
    Column::left("PID", 10).wide(20).end(),
    Column::fill("NAME", 12),
    Column::left("STATE", 18).wide(26),
    Column::right("MAIL", 6),
    Column::right("GROW/s", 7).rank(4),
    Column::right("MSG/s", 6),
    Column::right("BUSY%", 6),
    Column::right("STEPS", 6),
    Column::right("RST", 4).rank(3),
    Column::right("AGE", 6).rank(1),
    Column::left("MESSAGES", 16).rank(2),
    Column::left("!", 3),
];

pub(super) fn cells(app: &App, theme: Theme, place: usize) -> Vec<Cell> {
    let Some(row) = app.rows.all().get(place) else {
        return Vec::new();
    };
    let process = &row.process;
    let counts = process.counts.as_ref();
    let dash = |text: Option<String>| Cell::or_dash(text);
    let mut cells = vec![
        Cell::plain(short_pid(app, &process.pid)),
        Cell::plain(name(row)),
        state(process, row.ended.is_some(), theme),
        Cell::plain(count(row.mailbox())),
        dash(row.growth.map(signed)),
        dash(row.messages.map(rate)),
        dash(row.busy.map(percent)),
        dash(counts.map(|it| count(it.steps))),
        Cell::plain(process.incarnation.to_string()),
        dash(counts.map(|it| time(it.age_ns))),
        Cell::plain(sparkline(&row.sparks, SPARKS)),
        Cell::new(marks(row), theme.bad()),
    ];
    if row.ended.is_some() {
        cells = cells.into_iter().map(|it| it.styled(theme.dim())).collect();
    }
    cells
}

/// Returns the PID without the host of the shown scheduler.
pub(super) fn short_pid(app: &App, pid: &str) -> String {
    let plain = pid.trim_start_matches('{').trim_end_matches('}');
    let host = app.pulse.as_ref().map_or("", |it| it.host.as_str());
    match plain.strip_prefix(host).and_then(|it| it.strip_prefix('|')) {
        Some(id) => id.to_owned(),
        None => plain.to_owned(),
    }
}

/// Returns the name or label, and the type; the type alone where it has neither.
fn name(row: &Row) -> String {
    let kind = short_type(&row.process.type_name);
    match row.own_name() {
        Some(name) => format!("{name} {kind}"),
        None => kind,
    }
}

/// Returns the state, since when, and the awaited command.
pub(super) fn state(process: &Process, has_ended: bool, theme: Theme) -> Cell {
    if has_ended {
        return Cell::plain("ended");
    }
    let quiet = process.quiet_ns.map(time).unwrap_or_default();
    let wait = process.waits.iter().max_by_key(|it| it.since_ns);
    let (text, style) = match (process.state, wait) {
        _ if process.is_terminating => (format!("ending {quiet}"), theme.warning()),
        (State::Blocked, Some(wait)) => {
            let name = wait.name.as_deref().unwrap_or("command");
            (format!("{name} {}", time(wait.since_ns)), theme.warning())
        }
        (State::Blocked, None) => (format!("blocked {quiet}"), theme.warning()),
        (State::Suspended, _) => (format!("suspended {quiet}"), theme.warning()),
        (State::Running, _) => (format!("running {quiet}"), theme.good()),
        (state, _) => (format!("{} {quiet}", state.name()), Style::new()),
    };
    Cell::new(text, style)
}

fn marks(row: &Row) -> String {
    row.warnings.iter().map(|it| it.mark()).collect()
}

/// Formats a number with its sign.
fn signed(number: f64) -> String {
    match number {
        ..=-0.05 => format!("-{}", rate(-number)),
        0.05.. => format!("+{}", rate(number)),
        _ => "0".to_owned(),
    }
}

/// Draws the last values as bars; the highest value is a full bar.
pub(super) fn sparkline(values: &[f64], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &values[values.len().saturating_sub(width)..];
    let highest = shown.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| match highest > 0.0 {
        true => {
            let place = crate::text::whole(value / highest * 7.0);
            BARS[usize::try_from(place).unwrap_or(7).min(7)]
        }
        false => BARS[0],
    };
    shown.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_has_the_newest_values() {
        assert_eq!(sparkline(&[9.0, 0.0, 7.0, 14.0], 3), "▁▅█");
        assert_eq!(sparkline(&[0.0, 0.0], 8), "▁▁");
        assert_eq!(sparkline(&[], 8), "");
    }

    #[test]
    fn growth_has_a_sign() {
        assert_eq!(
            [0.0, 0.04, 3.0, -40.0].map(signed),
            ["0", "0", "+3.0", "-40"]
        );
    }
}
