//! The screen: head, title, list, and a line at the bottom.

mod grid;
mod head;
mod one;
mod owners;
mod processes;
mod theme;
mod views;

pub(crate) use theme::Theme;

use crate::app::{App, HELP, Link, SORTS, View};
use crate::text::{self, count};
use grid::{Cell, Column, Grid};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// The least screen.
const LEAST: (u16, u16) = (40, 10);

/// Draws all.
pub(crate) fn screen(app: &mut App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let (width, height) = LEAST;
        let text = format!("ganger-top needs {width} × {height}");
        buffer.set_stringn(area.x, area.y, text, area.width.into(), Style::new());
        return;
    }
    let end = area.bottom() - 1;
    for (y, line) in (area.y..).zip(head::lines(app, theme)) {
        buffer.set_line(area.x, y, &line, area.width);
    }
    let top = area.y + head::HEIGHT;
    buffer.set_line(area.x, top, &title(app, theme), area.width);
    let body = Rect {
        y: top + 1,
        height: end - top - 1,
        ..area
    };
    match app.has_help {
        true => help(body, theme, buffer),
        false => view(app, theme, body, buffer),
    }
    buffer.set_line(area.x, end, &bottom(app, theme), area.width);
}

/// Draws the lines above the title.
pub(crate) fn head(app: &App, theme: Theme) -> Vec<Line<'static>> {
    head::lines(app, theme)
}

/// Draws the list of the view.
pub(crate) fn view(app: &mut App, theme: Theme, mut area: Rect, buffer: &mut Buffer) {
    if app.view == View::One {
        return single(app, theme, area, buffer);
    }
    if app.view == View::Nodes {
        area = owners::draw(app, theme, area, buffer);
    }
    let count = match app.view {
        View::Nodes => app.peers().len(),
        _ => rows(app),
    };
    let note = app.note().map(str::to_owned);
    if count == 0 || note.is_some() {
        let text = note.as_deref().unwrap_or(empty(app));
        buffer.set_stringn(area.x, area.y, text, area.width.into(), theme.dim());
        return;
    }
    let height = usize::from(area.height.saturating_sub(1));
    app.page = height;
    let offset = app.cursor().scroll(height, count);
    let app = &*app;
    let (columns, row): (&[Column], &dyn Fn(usize) -> Vec<Cell>) = match app.view {
        View::Processes => (&processes::COLUMNS, &|it| processes::cells(app, theme, it)),
        View::Groups => (&views::GROUPS, &|it| views::group(app, it)),
        View::Tree => (&views::TREE, &|it| views::branch(app, theme, it)),
        View::Waits => (&views::WAITS, &|it| views::wait(app, theme, it)),
        View::Sockets => (&views::SOCKETS, &|it| views::socket(app, it)),
        View::Nodes => (&views::NODES, &|it| views::node(app, theme, it)),
        View::Alarms => (&views::ALARMS, &|it| views::alarm(app, theme, it)),
        View::Letters | View::One => (&views::LETTERS, &|it| views::letter(app, it)),
    };
    let sorted = SORTS.iter().position(|it| *it == app.sort);
    let sorted = sorted.filter(|_| app.view == View::Processes);
    let grid = Grid {
        columns,
        sorted: sorted.map(|it| (it, app.is_descending)),
        count,
        selected: Some(app.at()).filter(|it| *it < count),
        offset,
        row,
    };
    grid.draw(area, theme, buffer);
}

fn rows(app: &App) -> usize {
    match app.view {
        View::Processes => app.rows.all().len(),
        View::Groups => app.groups().len(),
        View::Tree => app.tree.visible().len(),
        View::Waits => app.waits.as_ref().map_or(0, |it| it.waits.len()),
        View::Sockets => app.sockets().len(),
        View::Nodes => app.peers().len() + app.names().len(),
        View::Alarms => app
            .pulse
            .as_ref()
            .map_or(0, |it| it.alarms.len() + it.long_steps.len()),
        View::Letters => app.letters().len(),
        View::One => app.one_lines,
    }
}

/// Returns the sentence in an empty list.
fn empty(app: &App) -> &'static str {
    match app.view {
        _ if app.link == Link::Waiting => "",
        _ if !app.is_answered() => "Asks, and has no answer yet.",
        View::Processes if !app.filter.terms().is_empty() => {
            "No process passes the filter. Esc clears it."
        }
        View::Processes | View::Groups | View::Tree => "No process is here yet.",
        View::Waits => "No process waits for another.",
        View::Sockets if app.sockets.as_ref().is_some_and(|it| it.driven.is_empty()) => {
            "ganger-net does not drive this scheduler: see Builder::driver."
        }
        View::Sockets => "No socket is open.",
        View::Nodes if app.nodes.as_ref().is_some_and(|it| it.nodes.is_empty()) => {
            "No scheduler here is a node of a cluster: see ganger::cluster."
        }
        View::Nodes => "No other node is known.",
        View::Alarms => "No alarm is raised, and no step was long.",
        View::Letters => "No dead letter is kept: see ganger_observe::keep_letters.",
        View::One => "",
    }
}

/// Draws a single process, whose lines scroll.
fn single(app: &mut App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let lines = one::lines(app, theme);
    app.one_lines = lines.len();
    app.page = area.height.into();
    let offset = app
        .at()
        .min(lines.len().saturating_sub(usize::from(area.height)));
    let shown = lines.iter().skip(offset).take(area.height.into());
    for (y, line) in (area.y..).zip(shown) {
        buffer.set_line(area.x, y, line, area.width);
    }
}

/// Draws the line above the list.
pub(crate) fn title(app: &App, theme: Theme) -> Line<'static> {
    if app.has_help {
        return Line::styled("Keys", theme.strong());
    }
    let title = Span::styled(format!("{} ", app.view.title()), theme.strong());
    let more = match app.view {
        _ if !app.is_answered() => String::new(),
        View::Processes => {
            let (listed, rows) = (app.rows.all().len() as u64, &app.rows);
            let mut more = format!(
                "{} of {}",
                count(listed.min(rows.matched)),
                count(rows.live)
            );
            if app.pulse.as_ref().is_some_and(|it| it.observes == "off") {
                more += ", not counted: build the scheduler with Builder::observe";
            } else if let Some(window) = app.window() {
                more += &format!(", window {}", text::duration(window));
            }
            if !app.filter.terms().is_empty() {
                let (filter, matched) = (app.filter.to_string(), count(rows.matched));
                more += &format!(", filter {} ({matched})", text::clean(&filter));
            }
            more
        }
        View::Groups => format!("{}", app.groups().len()),
        View::Tree => match app.tree.others {
            0 => String::new(),
            others => format!("{} are left out", count(others)),
        },
        View::Waits => {
            let count = app.waits.as_ref().map_or(0, |it| it.waits.len());
            let cycles = app.cycles.unwrap_or(0);
            format!("{count}, cycles {cycles}{}", views::heads(app))
        }
        View::Sockets => {
            let open = app.sockets.as_ref().map_or(0, |it| it.open);
            format!("{} of {}", app.sockets().len(), count(open))
        }
        View::Nodes => views::own_nodes(app),
        View::Alarms => {
            let pulse = app.pulse.as_ref();
            let (alarms, steps) = pulse.map_or((0, 0), |it| (it.alarms.len(), it.long_steps.len()));
            format!("{alarms}, long steps {steps}")
        }
        View::Letters => format!("{}", app.letters().len()),
        View::One => String::new(),
    };
    Line::from(vec![title, Span::raw(text::clean(&more).into_owned())])
}

/// Draws the line at the bottom: the filter in an edit, a message, or the keys.
fn bottom(app: &App, theme: Theme) -> Line<'static> {
    if let Some(edit) = &app.edit {
        let (before, behind) = edit.parts();
        let mut rest = behind.chars();
        let under = rest.next().map_or(" ".to_owned(), String::from);
        let mut spans = vec![
            Span::styled("filter: ", theme.strong()),
            Span::raw(text::clean(before).into_owned()),
            Span::styled(text::clean(&under).into_owned(), theme.selected()),
            Span::raw(text::clean(rest.as_str()).into_owned()),
        ];
        if let Err(error) = edit.text().parse::<ganger_observe::api::Filter>() {
            let error = format!("  {error}");
            spans.push(Span::styled(
                text::clean(&error).into_owned(),
                theme.warning(),
            ));
        }
        return Line::from(spans);
    }
    if let Some(question) = app.question() {
        return Line::styled(text::clean(&question).into_owned(), theme.warning());
    }
    if let Some(said) = app.said() {
        return Line::styled(said.to_owned(), theme.strong());
    }
    if let Link::Lost { why, .. } = &app.link {
        return Line::styled(why.clone(), theme.warning());
    }
    let keys = "? help  / filter  < > sort  pgewocal views  Enter one  x act  t trace  q quit";
    Line::styled(keys, theme.dim())
}

fn help(area: Rect, theme: Theme, buffer: &mut Buffer) {
    for (y, (key, does)) in (area.y..area.bottom()).zip(HELP) {
        buffer.set_stringn(area.x, y, key, 27, theme.strong());
        let x = area.x + 29;
        let room = area.width.saturating_sub(29);
        buffer.set_stringn(x, y, does, room.into(), Style::new());
    }
}

#[cfg(test)]
mod tests;
