//! The names of a cluster, the leases and the stores, below the peers.

use super::grid::{Cell, Column, Grid};
use super::theme::Theme;
use crate::app::App;
use crate::text::{self, count, time};
use ganger_observe::api::Node;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

const COLUMNS: [Column; 5] = [
    Column::fill("NAME", 10),
    Column::left("KIND", 8).wide(16),
    Column::left("NODE", 10).wide(20),
    Column::left("OWNER", 14).wide(40).end(),
    Column::right("TOKEN", 8).wide(16),
];

/// Draws the lower part of the nodes' view, in half of the area at most. Returns the upper part.
pub(super) fn draw(app: &App, theme: Theme, area: Rect, buffer: &mut Buffer) -> Rect {
    let nodes = app.nodes.iter().flat_map(|it| &it.nodes);
    let lines: Vec<_> = nodes.filter_map(|it| line(it, theme)).collect();
    let names = app.names().len();
    let rows = lines.len() + if names > 0 { names + 1 } else { 0 };
    let height = u16::try_from(rows).unwrap_or(u16::MAX).min(area.height / 2);
    let lower = Rect {
        y: area.bottom() - height,
        height,
        ..area
    };
    let mut y = lower.y;
    for (text, style) in lines.iter().take(height.into()) {
        buffer.set_stringn(area.x, y, text::clean(text), area.width.into(), *style);
        y += 1;
    }
    let list = Rect {
        y,
        height: lower.bottom() - y,
        ..area
    };
    if names > 0 {
        let selected = app.at().checked_sub(app.peers().len());
        let visible = usize::from(list.height.saturating_sub(1)).max(1);
        let grid = Grid {
            columns: &COLUMNS,
            sorted: None,
            count: names,
            selected,
            offset: selected.map_or(0, |it| (it + 1).saturating_sub(visible)),
            row: &|place| name(app, theme, place),
        };
        grid.draw(list, theme, buffer);
    }
    Rect {
        height: area.height - height,
        ..area
    }
}

/// Describes the store and the lease of a node, and how many names the node knows. None where all
/// are absent.
fn line(node: &Node, theme: Theme) -> Option<(String, Style)> {
    let (mut parts, mut style) = (Vec::new(), Style::new());
    let all = &node.names;
    if all.strong + all.eventual > 0 {
        let (strong, eventual) = (count(all.strong), count(all.eventual));
        parts.push(format!("names {strong} strong, {eventual} eventual"));
    }
    if let Some(lease) = &node.lease {
        let (left, whole) = (time(lease.left_ns), time(lease.whole_ns));
        let (names, locks) = (count(lease.names), count(lease.locks));
        parts.push(format!(
            "lease {left} of {whole} left, names {names}, locks {locks}, waiting {}",
            count(lease.waiting)
        ));
        if lease.left_ns < lease.whole_ns / 2 {
            style = theme.warning();
        }
    }
    if let Some(store) = &node.store {
        let reach = match store.lost_ns {
            None => "reachable".to_owned(),
            Some(lost) => format!("not reachable for {}", time(lost)),
        };
        let waiting = count(store.waiting);
        parts.push(format!("store {reach}, waiting {waiting}: {}", store.what));
        if store.lost_ns.is_some() {
            style = theme.bad();
        }
    }
    (!parts.is_empty()).then(|| (format!("{}: {}", node.name, parts.join("; ")), style))
}

fn name(app: &App, theme: Theme, place: usize) -> Vec<Cell> {
    let names = app.names();
    let Some((_, name)) = names.get(place) else {
        return Vec::new();
    };
    let kind = match (name.token, name.is_given_up) {
        (None, _) => Cell::plain("eventual"),
        (Some(_), false) => Cell::plain("strong"),
        (Some(_), true) => Cell::new("given up", theme.bad()),
    };
    vec![
        Cell::plain(&name.name),
        kind,
        Cell::plain(&name.node),
        Cell::plain(&name.pid),
        Cell::plain(name.token.map(|it| it.to_string()).unwrap_or_default()),
    ]
}
