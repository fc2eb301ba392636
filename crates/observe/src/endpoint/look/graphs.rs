//! Groups, the tree, waits and sockets, as the API has them.

use super::one::state;
use super::{count, nanos};
use crate::api::{
    Group, Groups, Head, Socket, SocketWait, Sockets, SocketsQuery, Tree, TreeNode, VERSION,
    WaitFor, Waits,
};
use crate::endpoint::observed::Shown;
use crate::observer::{self, groups, tree, waits};
use ganger_wait::watch::Party;
use std::cmp::Reverse;
use std::time::Duration;

/// The most groups in an answer.
const MOST_GROUPS: usize = 1_000;

/// Returns the groups of some schedulers, by their numbers. O(groups × log groups).
pub(in crate::endpoint) fn groups(all: Vec<(u64, groups::Collected)>) -> Groups {
    let each = all.into_iter().flat_map(|(scheduler, collected)| {
        let group = move |it| group(scheduler, it);
        collected.finish().into_iter().map(group)
    });
    let mut groups: Vec<_> = each.collect();
    groups.sort_by_key(|it| (Reverse(it.count), it.scheduler));
    let left_out = groups.get(MOST_GROUPS..).unwrap_or_default();
    let others = left_out.iter().map(|it| it.count).sum();
    groups.truncate(MOST_GROUPS);
    Groups {
        version: VERSION,
        groups,
        others,
    }
}

fn group(scheduler: u64, group: observer::Group) -> Group {
    Group {
        scheduler,
        type_name: group.type_name.to_owned(),
        method: group.method.to_string(),
        label: group.label.map(|it| it.to_string()),
        state: state(group.state),
        waits_for: group.waits_for.map(|it| it.to_string()),
        count: group.count,
        waiting: group.waiting,
    }
}

/// Joins the trees of some schedulers.
pub(in crate::endpoint) fn tree(schedulers: &[Shown], all: Vec<(u64, tree::Collected)>) -> Tree {
    let mut whole = Tree {
        version: VERSION,
        nodes: Vec::new(),
        others: 0,
    };
    for (scheduler, collected) in all {
        let handle = schedulers.iter().find(|it| it.number == scheduler);
        let part = collected.finish(|pid| tree::first_name(&handle?.handle, pid));
        let before = whole.nodes.len();
        let node = |it: observer::Node| TreeNode {
            scheduler,
            pid: it.pid.map(|it| it.to_string()),
            parent: it.parent.map(|it| count(before + it)),
            name: it.name,
            kind: it.kind,
            is_supervisor: it.is_supervisor,
            state: it.state.map(state),
            restarts: it.restarts,
            last_cause: it.last_cause,
        };
        whole.nodes.extend(part.nodes.into_iter().map(node));
        whole.others += part.others;
    }
    whole
}

/// Returns a page of the sockets of the schedulers that the query asks for.
pub(in crate::endpoint) fn sockets(schedulers: &[Shown], query: &SocketsQuery) -> Sockets {
    let mut page = Sockets {
        version: VERSION,
        open: 0,
        driven: Vec::new(),
        sockets: Vec::new(),
    };
    let is_asked = |it: &&Shown| query.scheduler.is_none_or(|number| number == it.number);
    for shown in schedulers.iter().filter(is_asked) {
        let most = query.top as usize - page.sockets.len();
        let Some(found) = observer::sockets::sockets(&shown.handle, query.after, most) else {
            continue;
        };
        page.open += count(found.open);
        page.driven.push(shown.number);
        let socket = |it| socket(schedulers, shown.number, it);
        page.sockets.extend(found.sockets.into_iter().map(socket));
    }
    page
}

fn socket(schedulers: &[Shown], scheduler: u64, socket: observer::Socket) -> Socket {
    let wait = |it: observer::SocketWait| SocketWait {
        is_write: it.is_write,
        pid: it.process.map(|it| it.to_string()),
        scheduler: it.process.and_then(|it| Some(of(schedulers, &it)?.number)),
        name: it.process.and_then(|it| party_name(schedulers, &it)),
        since_ns: it.since.map(nanos),
    };
    Socket {
        scheduler,
        id: socket.id,
        kind: socket.kind.to_string(),
        local: socket.local,
        peer: socket.peer,
        waits: socket.waits.into_iter().map(wait).collect(),
    }
}

/// Returns the scheduler of a process.
fn of<'a>(schedulers: &'a [Shown], party: &Party) -> Option<&'a Shown> {
    let Party::Process(_, number) = party else {
        return None;
    };
    schedulers.iter().find(|it| it.handle.number() == *number)
}

/// Returns the name or type of a process.
fn party_name(schedulers: &[Shown], party: &Party) -> Option<String> {
    match party {
        Party::Process(pid, _) => waits::name_of(&of(schedulers, party)?.handle, *pid),
        Party::Thread(_) => None,
    }
}

/// Returns the waits of the program.
pub(in crate::endpoint) fn waits(
    schedulers: &[Shown],
    collected: waits::Collected,
    watched: Duration,
) -> Waits {
    let graph = collected.finish();
    let number = |party: &Party| of(schedulers, party).map(|it| it.number);
    let name = |party: &Party| party_name(schedulers, party);
    let wait = |it: observer::Wait| WaitFor {
        scheduler: number(&it.waiter),
        waiter: it.waiter.to_string(),
        waiter_name: name(&it.waiter),
        kind: it.kind.to_owned(),
        parties: it.parties.iter().map(ToString::to_string).collect(),
        party_schedulers: it.parties.iter().map(number).collect(),
        since_ns: nanos(it.since),
    };
    let head = |it: observer::Head| Head {
        party: it.party.to_string(),
        scheduler: number(&it.party),
        party_name: name(&it.party),
        waiters: count(it.waiters),
        longest_ns: nanos(it.longest),
    };
    let cycle = |it: Vec<usize>| it.into_iter().map(count).collect();
    Waits {
        version: VERSION,
        waits: graph.waits.into_iter().map(wait).collect(),
        cycles: graph.cycles.into_iter().map(cycle).collect(),
        heads: graph.heads.into_iter().map(head).collect(),
        others: graph.others,
        watched_ns: nanos(watched),
    }
}
