//! Nodes that come and go, as processes are told.
//!
//! The recipient of a watcher runs code of users, which may call the cluster. So news wait in a
//! queue, and the first thread takes the list of watchers out and tells, without the lock, until
//! the queue is empty. Meanwhile other threads only add news. Each watcher gets all in their order.

use crate::id::{Incarnation, NodeId};
use crate::session::End;
use ganger_sched::Recipient;
use ganger_sync::contain;
use ganger_sync::sync::{Mutex, lock};
use std::collections::{BTreeMap, VecDeque};
use std::mem;

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
    news: VecDeque<News>,
    /// Without the watchers that a thread tells at the moment.
    watchers: Vec<Recipient<NodeChange>>,
    is_telling: bool,
}

enum News {
    /// A watcher, and what is up as it comes.
    Watcher(Recipient<NodeChange>, Vec<NodeChange>),
    Change(NodeChange),
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
        self.tell(|state| {
            // Under the lock, so that the snapshot is before all changes.
            let up = state.up.iter().map(|(node, incarnation)| NodeChange::Up {
                node: node.clone(),
                incarnation: *incarnation,
            });
            let up = up.collect();
            Some(News::Watcher(watcher, up))
        });
    }

    pub(crate) fn up(&self, node: &NodeId, incarnation: Incarnation) {
        self.tell(|state| {
            state.up.insert(node.clone(), incarnation);
            let node = node.clone();
            Some(News::Change(NodeChange::Up { node, incarnation }))
        });
    }

    pub(crate) fn down(&self, node: &NodeId, why: End, undelivered: u64) {
        self.tell(|state| {
            let incarnation = state.up.remove(node);
            let node = node.clone();
            let change = match incarnation {
                Some(incarnation) => NodeChange::Down {
                    node,
                    incarnation,
                    why,
                    undelivered,
                },
                None if undelivered > 0 => NodeChange::Unreachable {
                    node,
                    why,
                    undelivered,
                },
                None => return None,
            };
            Some(News::Change(change))
        });
    }

    /// Adds the news of a change, and tells, unless a thread is about it.
    fn tell(&self, change: impl FnOnce(&mut State) -> Option<News>) {
        let mut state = lock(&self.0);
        let news = change(&mut state);
        state.news.extend(news);
        if mem::replace(&mut state.is_telling, true) {
            return;
        }
        while let Some(news) = state.news.pop_front() {
            let mut watchers = mem::take(&mut state.watchers);
            drop(state);
            // No limit of a mailbox refuses a system event, and the call never blocks.
            match news {
                News::Watcher(watcher, mut up) => {
                    if up.drain(..).all(|change| is_told(&watcher, change)) {
                        take_out(&mut watchers, |it| it.is_closed());
                        watchers.push(watcher);
                    } else {
                        contain(|| drop(watcher));
                    }
                }
                News::Change(change) => {
                    take_out(&mut watchers, |it| !is_told(it, change.clone()));
                }
            }
            state = lock(&self.0);
            state.watchers = watchers;
        }
        state.is_telling = false;
    }
}

/// Drops the watchers that have ended, once all are asked: their destructors are of users.
fn take_out(
    watchers: &mut Vec<Recipient<NodeChange>>,
    mut has_ended: impl FnMut(&Recipient<NodeChange>) -> bool,
) {
    let ended: Vec<_> = watchers.extract_if(.., |it| has_ended(it)).collect();
    for watcher in ended {
        contain(|| drop(watcher));
    }
}

/// Tells a watcher of a change. False: the watcher has ended, or its function has panicked. A panic
/// must not end the link.
fn is_told(watcher: &Recipient<NodeChange>, change: NodeChange) -> bool {
    let told = contain(|| watcher.send_system(change).is_ok());
    told.unwrap_or_else(|| {
        let text = "the function of a watcher of nodes has panicked, and is called no more";
        tracing::error!(target: "ganger::cluster", watcher = %watcher.pid(), "{text}");
        false
    })
}
