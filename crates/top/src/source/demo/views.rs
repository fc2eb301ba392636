//! Groups, the tree, waits, sockets and letters of the shop.

use super::crowd::{Member, nanos, pid};
use crate::text::whole;
use ganger_observe::api::{
    ClusterName, ClusterNames, Group, Groups, Head, Letter, Letters, Node, NodeLease, NodeStore,
    Nodes, Peer, SchedulerLetters, Socket, SocketWait, Sockets, SocketsQuery, Tree, TreeNode,
    VERSION, WaitFor, Waits,
};
use std::cmp::Reverse;

pub(super) fn groups(all: &[Member]) -> Groups {
    let mut groups: Vec<Group> = Vec::new();
    for member in all {
        let process = &member.process;
        let waits_for = process.waits.first().and_then(|it| it.name.clone());
        let is_same = |it: &&mut Group| {
            (it.scheduler, &it.type_name, &it.label)
                == (member.scheduler, &process.type_name, &process.label)
                && (it.state, &it.waits_for) == (process.state, &waits_for)
        };
        let waiting = process.counts.as_ref().map_or(0, |it| it.waiting);
        if let Some(group) = groups.iter_mut().find(is_same) {
            group.count += 1;
            group.waiting += waiting;
            continue;
        }
        groups.push(Group {
            scheduler: member.scheduler,
            type_name: process.type_name.clone(),
            method: process.method.clone(),
            label: process.label.clone(),
            state: process.state,
            waits_for,
            count: 1,
            waiting,
        });
    }
    groups.sort_by_key(|it| Reverse(it.count));
    Groups {
        version: VERSION,
        groups,
        others: 0,
    }
}

/// Builds the tree of the members; parents come before their members.
pub(super) fn tree(all: &[Member]) -> Tree {
    let place = |pid: &String| all.iter().position(|it| it.process.pid == *pid);
    let node = |member: &Member| {
        let process = &member.process;
        TreeNode {
            scheduler: member.scheduler,
            pid: Some(process.pid.clone()),
            parent: process.parent.as_ref().and_then(place).map(|it| it as u64),
            name: process.names.first().cloned(),
            kind: member.strategy.unwrap_or(&process.type_name).to_owned(),
            is_supervisor: member.strategy.is_some(),
            state: Some(process.state),
            restarts: member.restarts,
            last_cause: (member.restarts > 0).then(|| "failed: no such file".to_owned()),
        }
    };
    Tree {
        version: VERSION,
        nodes: all.iter().map(node).collect(),
        others: 0,
    }
}

pub(super) fn waits(now: f64) -> Waits {
    let transfer = |place: u64, behind: u64| WaitFor {
        scheduler: Some(1),
        waiter: pid(1, place),
        waiter_name: Some("bank::Transfer".to_owned()),
        kind: "mutex".to_owned(),
        parties: vec![pid(1, behind)],
        party_schedulers: vec![Some(1)],
        since_ns: nanos(now - 2.0),
    };
    let shelf = |place: u64| WaitFor {
        scheduler: Some(1),
        waiter: pid(1, 20 + place),
        waiter_name: Some("store::Shelf".to_owned()),
        kind: "sql".to_owned(),
        parties: vec!["thread sql-1".to_owned()],
        party_schedulers: vec![None],
        since_ns: nanos((now + place as f64 * 1.3) % 4.0),
    };
    let mut waits = vec![transfer(40, 41), transfer(41, 40), transfer(42, 40)];
    waits.extend((0..4).map(shelf));
    Waits {
        version: VERSION,
        waits,
        cycles: vec![vec![0, 1]],
        heads: vec![Head {
            party: "thread sql-1".to_owned(),
            scheduler: None,
            party_name: None,
            waiters: 4,
            longest_ns: nanos(now % 4.0),
        }],
        others: 0,
        watched_ns: nanos(now),
    }
}

/// Lists the sockets: the first scheduler has a listener, and a connection for each of the newest
/// sessions.
pub(super) fn sockets(now: f64, query: &SocketsQuery) -> Sockets {
    let socket = |id: u64, place: u64, name: &str| Socket {
        scheduler: 1,
        id,
        kind: if id == 1 { "tcp_listener" } else { "tcp" }.to_owned(),
        local: Some("10.1.0.7:443".to_owned()),
        peer: (id > 1).then(|| format!("10.1.9.{}:{}", id % 200, 50_000 + id % 10_000)),
        waits: vec![SocketWait {
            is_write: id.is_multiple_of(5),
            pid: Some(pid(1, place)),
            scheduler: Some(1),
            name: Some(name.to_owned()),
            since_ns: Some(nanos((now + id as f64 * 0.7) % 9.0)),
        }],
    };
    let newest = whole((now * 2.0).floor());
    let sessions = newest.saturating_sub(3)..=newest;
    let mut all = vec![socket(1, 10, "shop::Orders<shop::Basket>")];
    all.extend(sessions.map(|number| socket(2 + number, 5_000 + number, "web::Session")));
    let mut driven = vec![1];
    if query.scheduler.is_some_and(|it| it != 1) {
        (all, driven) = (Vec::new(), Vec::new());
    }
    let open = all.len() as u64;
    all.retain(|it| it.id > query.after);
    all.truncate(query.top as usize);
    Sockets {
        version: VERSION,
        open,
        driven,
        sockets: all,
    }
}

/// Lists the nodes: the shop is a node, with two peers. The second is away for five seconds of each
/// minute.
pub(super) fn nodes(now: f64) -> Nodes {
    let peer = |name: &str, is_up: bool| Peer {
        name: name.to_owned(),
        incarnation: is_up.then(|| "19a0c3f51b2e0007".to_owned()),
        state: if is_up { "up" } else { "opening" }.to_owned(),
        round_trip_ns: is_up.then(|| nanos(0.000_15 + (now % 7.0) * 0.000_01)),
        queued: [
            0,
            if is_up {
                whole(now * 97.0) % 4_096
            } else {
                65_536
            },
        ],
        unacknowledged: [0, if is_up { whole(now * 31.0) % 2_048 } else { 0 }],
        resent: [0, whole(now / 60.0) * 3],
        watching: 2,
        watched: 5,
        links: 1,
        asked: whole(now) % 4,
        waiting: 0,
        ended: if name == "billing" {
            whole(now / 60.0)
        } else {
            0
        },
        last_end: None,
        undelivered: 0,
    };
    let name = |name: &str, node: &str, token: Option<u64>| ClusterName {
        name: name.to_owned(),
        pid: format!("{{{node}@main|4294967303}}"),
        node: node.to_owned(),
        token,
        is_given_up: false,
    };
    let shop = Node {
        scheduler: 1,
        name: "shop".to_owned(),
        cluster: "demo".to_owned(),
        incarnation: "19a0c3f51b2d0001".to_owned(),
        peers: vec![peer("billing", now % 60.0 < 55.0), peer("stock", true)],
        names: ClusterNames {
            eventual: 1,
            strong: 2,
            first: vec![
                name("invoices", "shop", Some(41)),
                name("orders", "stock", Some(17)),
                name("cart", "stock", None),
            ],
        },
        lease: Some(NodeLease {
            left_ns: nanos(5.0 - now % 2.0),
            whole_ns: nanos(5.0),
            names: 1,
            locks: 1,
            waiting: 0,
        }),
        store: Some(NodeStore {
            what: "a registrar at stock: a single authority".to_owned(),
            lost_ns: None,
            waiting: 0,
        }),
    };
    Nodes {
        version: VERSION,
        nodes: vec![shop],
    }
}

pub(super) fn letters(now: f64) -> Letters {
    let letter = |number: u64| Letter {
        reason: "ended".to_owned(),
        source: Some(pid(1, 10)),
        target: pid(1, 5_000 + number),
        topic: "web::Update".to_owned(),
        at_ns: nanos(number as f64 / 2.0),
        message: Some("shop::Mail".to_owned()),
        text: Some(format!("mail {number}")),
    };
    let newest = whole((now * 2.0).floor()).saturating_sub(20);
    let shop = SchedulerLetters {
        scheduler: 1,
        host: "shop".to_owned(),
        undelivered: whole(now * 2.0),
        refused: whole(now / 20.0),
        last: Some((newest.saturating_sub(20)..newest).map(letter).collect()),
    };
    let batch = SchedulerLetters {
        scheduler: 2,
        host: "batch".to_owned(),
        undelivered: 0,
        refused: 0,
        last: None,
    };
    Letters {
        version: VERSION,
        schedulers: vec![shop, batch],
    }
}
