//! Nodes that come and go, as processes are told.

use crate::id::{Incarnation, NodeId};
use crate::session::End;
use ganger_sched::Recipient;
use ganger_sync::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A node has come or gone, or can't be reached: see
/// [`Cluster::watch_nodes`](crate::Cluster::watch_nodes).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeChange {
    /// A session with the node is up.
    Up {
        /// The node.
        node: NodeId,
        /// Its run.
        incarnation: Incarnation,
    },
    /// The session with the node has ended. All monitors and links across it have been told, or are
    /// told now, with `NoConnection`.
    Down {
        /// The node.
        node: NodeId,
        /// Its run.
        incarnation: Incarnation,
        /// Why the session has ended.
        why: End,
        /// How many messages and requests to the node are not known to have arrived.
        undelivered: u64,
    },
    /// No session with the node has come up, and what was sent to it has not left.
    Unreachable {
        /// The node.
        node: NodeId,
        /// Why the attempt has ended.
        why: End,
        /// How many messages and requests were sent to it.
        undelivered: u64,
    },
}

/// The connected nodes, and the processes to be told of changes.
#[derive(Default)]
pub(crate) struct Watchers(Mutex<State>);

#[derive(Default)]
struct State {
    up: BTreeMap<NodeId, Incarnation>,
    watchers: Vec<Recipient<NodeChange>>,
}

impl Watchers {
    pub(crate) fn nodes(&self) -> Vec<(NodeId, Incarnation)> {
        let state = lock(&self.0);
        state
            .up
            .iter()
            .map(|(node, it)| (node.clone(), *it))
            .collect()
    }

    pub(crate) fn incarnation(&self, node: &NodeId) -> Option<Incarnation> {
        lock(&self.0).up.get(node).copied()
    }

    /// Tells the watcher of the nodes that are up, and then of each change.
    pub(crate) fn add(&self, watcher: Recipient<NodeChange>) {
        // Under the lock, so that the snapshot is before all changes. No limit of a mailbox refuses
        // a system event, and the call never blocks.
        let mut state = lock(&self.0);
        let mut snapshot = state.up.iter().map(|(node, incarnation)| NodeChange::Up {
            node: node.clone(),
            incarnation: *incarnation,
        });
        if snapshot.all(|change| is_told(&watcher, change)) {
            state.watchers.retain(|it| !it.is_closed());
            state.watchers.push(watcher);
        }
    }

    pub(crate) fn up(&self, node: &NodeId, incarnation: Incarnation) {
        let mut state = lock(&self.0);
        state.up.insert(node.clone(), incarnation);
        let node = node.clone();
        state.tell(&NodeChange::Up { node, incarnation });
    }

    pub(crate) fn down(&self, node: &NodeId, why: End, undelivered: u64) {
        let mut state = lock(&self.0);
        let Some(incarnation) = state.up.remove(node) else {
            let node = node.clone();
            if undelivered > 0 {
                let change = NodeChange::Unreachable {
                    node,
                    why,
                    undelivered,
                };
                state.tell(&change);
            }
            return;
        };
        let node = node.clone();
        state.tell(&NodeChange::Down {
            node,
            incarnation,
            why,
            undelivered,
        });
    }
}

impl State {
    fn tell(&mut self, change: &NodeChange) {
        (self.watchers).retain(|watcher| is_told(watcher, change.clone()));
    }
}

/// False: the watcher has ended, or its function has panicked. A panic must not end the link.
fn is_told(watcher: &Recipient<NodeChange>, change: NodeChange) -> bool {
    let told = catch_unwind(AssertUnwindSafe(|| watcher.send_system(change).is_ok()));
    told.unwrap_or_else(|_| {
        let text = "the function of a watcher of nodes has panicked, and is called no more";
        tracing::error!(target: "ganger::cluster", watcher = %watcher.pid(), "{text}");
        false
    })
}
