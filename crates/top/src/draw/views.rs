//! Groups, the tree, waits, sockets, alarms and letters as lists.

use super::grid::{Cell, Column};
use super::processes::short_pid;
use super::theme::Theme;
use crate::app::{App, Branch};
use crate::text::{count, short_type, time};
use ganger_observe::api::{Alarm, LongStep, TreeNode};
use ratatui::style::Style;

pub(super) const GROUPS: [Column; 6] = [
    Column::right("COUNT", 7),
    Column::right("MAIL", 7),
    Column::left("STATE", 8),
    Column::left("WAITS FOR", 14).wide(24),
    Column::fill("TYPE", 18),
    Column::left("LABEL", 14).wide(24),
];

pub(super) fn group(app: &App, place: usize) -> Vec<Cell> {
    let groups = app.groups();
    let Some(group) = groups.get(place) else {
        return Vec::new();
    };
    vec![
        Cell::plain(count(group.count)),
        Cell::plain(count(group.waiting)),
        Cell::plain(group.state.name()),
        Cell::plain(group.waits_for.as_deref().unwrap_or_default()),
        Cell::plain(format!("{}.{}", short_type(&group.type_name), group.method)),
        Cell::plain(group.label.as_deref().unwrap_or_default()),
    ]
}

pub(super) const TREE: [Column; 5] = [
    Column::fill("TREE", 36),
    Column::left("STATE", 8),
    Column::right("BELOW", 6),
    Column::right("RST", 5),
    Column::fill("LAST CAUSE", 24).rank(1),
];

pub(super) fn branch(app: &App, theme: Theme, place: usize) -> Vec<Cell> {
    let Some(&branch) = app.tree.visible().get(place) else {
        return Vec::new();
    };
    let node = app.tree.node(branch);
    let below = match branch.below {
        0 => String::new(),
        below => count(below as u64),
    };
    let restarted = if node.restarts > 0 {
        theme.warning()
    } else {
        Style::new()
    };
    vec![
        Cell::plain(branch_text(app, node, branch)),
        Cell::plain(node.state.map_or("none", |it| it.name())),
        Cell::plain(below),
        Cell::new(count(node.restarts), restarted),
        Cell::plain(node.last_cause.as_deref().unwrap_or_default()),
    ]
}

fn branch_text(app: &App, node: &TreeNode, branch: Branch) -> String {
    let indent = "  ".repeat(branch.depth.min(20));
    let sign = match (branch.below, branch.is_folded) {
        (0, _) => " ",
        (_, true) => "+",
        (_, false) => "-",
    };
    let name = node
        .name
        .as_deref()
        .map(|it| format!("{it} "))
        .unwrap_or_default();
    let kind = match node.is_supervisor {
        true => format!("supervisor, {}", node.kind),
        false => short_type(&node.kind),
    };
    let pid = node
        .pid
        .as_ref()
        .map_or("not running".to_owned(), |it| short_pid(app, it));
    format!("{indent}{sign} {name}{kind} {pid}")
}

pub(super) const WAITS: [Column; 6] = [
    Column::left("CYCLE", 5),
    Column::left("WAITER", 14).wide(20).end(),
    Column::fill("NAME", 12),
    Column::left("FOR", 10).wide(20),
    Column::fill("BEHIND", 16),
    Column::right("SINCE", 7),
];

pub(super) fn wait(app: &App, theme: Theme, place: usize) -> Vec<Cell> {
    let Some((waits, wait)) = app
        .waits
        .as_ref()
        .and_then(|it| Some((it, it.waits.get(place)?)))
    else {
        return Vec::new();
    };
    let is_in = |cycle: &Vec<u64>| cycle.contains(&(place as u64));
    let cycle = waits.cycles.iter().position(is_in);
    let style = if cycle.is_some() {
        theme.bad()
    } else {
        Style::new()
    };
    let parties: Vec<_> = wait.parties.iter().map(|it| short_pid(app, it)).collect();
    let texts = [
        cycle.map(|it| (it + 1).to_string()).unwrap_or_default(),
        short_pid(app, &wait.waiter),
        wait.waiter_name
            .as_deref()
            .map(short_type)
            .unwrap_or_default(),
        wait.kind.clone(),
        if parties.is_empty() {
            "not known".to_owned()
        } else {
            parties.join(", ")
        },
        time(wait.since_ns),
    ];
    texts.into_iter().map(|it| Cell::new(it, style)).collect()
}

/// Returns the parties with the most waiters.
pub(super) fn heads(app: &App) -> String {
    let heads = app.waits.iter().flat_map(|it| it.heads.iter().take(2));
    let text = heads.map(|it| {
        let party = short_pid(app, &it.party);
        format!(
            ", {} behind {party} (longest {})",
            count(it.waiters),
            time(it.longest_ns)
        )
    });
    text.collect()
}

pub(super) const SOCKETS: [Column; 7] = [
    Column::left("SOCKET", 13),
    Column::fill("HERE", 15),
    Column::fill("PEER", 15),
    Column::left("WAITER", 12).wide(20).end(),
    Column::fill("NAME", 10),
    Column::left("TO", 6).rank(1),
    Column::right("SINCE", 7),
];

/// Describes a socket, with the first of its waiters.
pub(super) fn socket(app: &App, place: usize) -> Vec<Cell> {
    let Some(socket) = app.sockets().get(place) else {
        return Vec::new();
    };
    let wait = socket.waits.first();
    let more = match socket.waits.len() {
        0 | 1 => String::new(),
        waits => format!(" +{}", waits - 1),
    };
    let pid = wait.map(|it| match &it.pid {
        Some(pid) => short_pid(app, pid),
        None => "unknown".to_owned(),
    });
    let name = wait.and_then(|it| it.name.as_deref()).map(short_type);
    let to = wait.map(|it| match it.is_write {
        true => "write",
        false if socket.kind.ends_with("listener") => "accept",
        false => "read",
    });
    let since = wait.and_then(|it| it.since_ns).map(time);
    vec![
        Cell::plain(&socket.kind),
        Cell::plain(socket.local.as_deref().unwrap_or_default()),
        Cell::plain(socket.peer.as_deref().unwrap_or_default()),
        Cell::plain(pid.unwrap_or_default()),
        Cell::plain(name.unwrap_or_default() + &more),
        Cell::plain(to.unwrap_or_default()),
        Cell::plain(since.unwrap_or_default()),
    ]
}

pub(super) const NODES: [Column; 10] = [
    Column::fill("PEER", 10),
    Column::left("SESSION", 8),
    Column::right("RTT", 7),
    Column::right("QUEUE", 8),
    Column::right("FLIGHT", 8),
    Column::right("RESENT", 7).rank(1),
    Column::right("WATCHES", 8).rank(1),
    Column::right("ASKED", 7).rank(1),
    Column::right("ENDED", 6),
    Column::right("LOST", 7),
];

/// Describes a peer of a node of the program.
pub(super) fn node(app: &App, theme: Theme, place: usize) -> Vec<Cell> {
    let peers = app.peers();
    let Some((node, peer)) = peers.get(place) else {
        return Vec::new();
    };
    let sum = |pair: [u64; 2]| pair.iter().fold(0, |sum: u64, it| sum.saturating_add(*it));
    let nodes = app.nodes.as_ref().map_or(0, |it| it.nodes.len());
    let name = match nodes {
        0 | 1 => peer.name.clone(),
        _ => format!("{} of {}", peer.name, node.name),
    };
    let session = Cell::plain(&peer.state);
    let session = match &*peer.state {
        "up" => session,
        _ => session.styled(theme.bad()),
    };
    vec![
        Cell::plain(name),
        session,
        Cell::plain(peer.round_trip_ns.map(time).unwrap_or_default()),
        Cell::plain(count(sum(peer.queued))),
        Cell::plain(count(sum(peer.unacknowledged))),
        Cell::plain(count(sum(peer.resent))),
        Cell::plain(count(peer.watching)),
        Cell::plain(count(peer.asked)),
        Cell::plain(count(peer.ended)),
        Cell::plain(count(peer.undelivered)),
    ]
}

/// Returns the nodes of the program, above the list.
pub(super) fn own_nodes(app: &App) -> String {
    let nodes = app.nodes.iter().flat_map(|it| &it.nodes);
    let names: Vec<_> = nodes
        .map(|it| format!("{} of {}, run {}", it.name, it.cluster, it.incarnation))
        .collect();
    names.join("; ")
}

pub(super) const ALARMS: [Column; 4] = [
    Column::right("SINCE", 7),
    Column::left("KIND", 12).wide(20),
    Column::left("PID", 11).wide(20).end(),
    Column::fill("WHAT", 30),
];

/// Describes the alarms, and then the long steps.
pub(super) fn alarm(app: &App, theme: Theme, place: usize) -> Vec<Cell> {
    let Some(pulse) = &app.pulse else {
        return Vec::new();
    };
    let step = || {
        pulse
            .long_steps
            .iter()
            .rev()
            .nth(place - pulse.alarms.len())
    };
    match pulse.alarms.get(place) {
        Some(alarm) => raised(app, theme, alarm),
        None => step().map(|it| long_step(app, it)).unwrap_or_default(),
    }
}

fn raised(app: &App, theme: Theme, alarm: &Alarm) -> Vec<Cell> {
    let style = if alarm.is_severe {
        theme.bad()
    } else {
        theme.warning()
    };
    let (value, limit) = (alarm.value, alarm.limit);
    let pid = alarm.pid.as_deref().map(|it| short_pid(app, it));
    vec![
        Cell::plain(time(alarm.since_ns)),
        Cell::new(&alarm.kind, style),
        Cell::plain(pid.unwrap_or_default()),
        Cell::plain(format!("{} ({value}, limit {limit})", alarm.text)),
    ]
}

fn long_step(app: &App, step: &LongStep) -> Vec<Cell> {
    let kind = match (step.is_blocked, step.is_over) {
        (true, true) => "blocked",
        (true, false) => "blocks still",
        (false, true) => "computed",
        (false, false) => "computes still",
    };
    let backtrace = step.backtrace.iter().flat_map(|it| it.lines());
    let functions: Vec<_> = backtrace.map(str::trim).collect();
    let method = step.method.as_deref().unwrap_or_default();
    vec![
        Cell::plain(time(step.lasted_ns)),
        Cell::plain("long step"),
        Cell::plain(short_pid(app, &step.pid)),
        Cell::plain(format!("{kind} in {method}: {}", functions.join(" < "))),
    ]
}

/// Returns the topic, and the message by its `Show`, or its type.
fn letter_text(letter: &ganger_observe::api::Letter) -> String {
    let message = letter.message.as_deref().map(short_type);
    let text = letter.text.as_deref().or(message.as_deref());
    let topic = short_type(&letter.topic);
    let parts = [&*topic, text.unwrap_or_default()];
    let parts: Vec<_> = parts.into_iter().filter(|it| !it.is_empty()).collect();
    parts.join(" ")
}

pub(super) const LETTERS: [Column; 5] = [
    Column::right("AGO", 7),
    Column::left("REASON", 12),
    Column::left("TARGET", 14).wide(20).end(),
    Column::left("SOURCE", 14).wide(20).end(),
    Column::fill("TOPIC", 16),
];

pub(super) fn letter(app: &App, place: usize) -> Vec<Cell> {
    let letters = app.letters();
    let Some(letter) = letters.get(place) else {
        return Vec::new();
    };
    let uptime = app.pulse.as_ref().map_or(0, |it| it.uptime_ns);
    let source = letter.source.as_deref().map(|it| short_pid(app, it));
    vec![
        Cell::plain(time(uptime.saturating_sub(letter.at_ns))),
        Cell::plain(&letter.reason),
        Cell::plain(short_pid(app, &letter.target)),
        Cell::plain(source.as_deref().unwrap_or("-")),
        Cell::plain(letter_text(letter)),
    ]
}
