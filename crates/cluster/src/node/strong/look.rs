//! The strong names, the lease and the store of a node, for observers.

use super::names::StrongNames;
use super::values::{FencingToken, Owner};
use ganger_proc_api::Pid;
use std::time::Duration;

/// The lease of a node at a moment: see [`Cluster::lease`](crate::Cluster::lease).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseLook {
    /// The time until the node gives its strong names and locks up, unless the store renews the
    /// lease before.
    pub left: Duration,
    /// The time that each renewal gives: half of [`Builder::lease`](crate::Builder::lease).
    pub whole: Duration,
    /// The strong names that processes of the node have.
    pub names: usize,
    /// The locks of the node.
    pub locks: usize,
    /// Names and locks for which processes of the node wait, or on their way back.
    pub waiting: usize,
}

/// The store of a node at a moment: see [`Cluster::store_look`](crate::Cluster::store_look).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreLook {
    /// The promise of the store, in a few words: [`Store::describe`](crate::Store::describe).
    pub what: String,
    /// For how long the store has been out of reach. `None`: the node has news from it.
    pub lost_for: Option<Duration>,
    /// Operations of the node's names and locks without an answer so far.
    pub waiting: usize,
}

/// A name of the cluster with its owner, as a node knows them: see
/// [`Cluster::owners`](crate::Cluster::owners).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NameLook {
    /// The name.
    pub name: Box<str>,
    /// The process.
    pub pid: Pid,
    /// The node of the process.
    pub node: Box<str>,
    /// The number of the ownership of a strong name; none of another.
    pub token: Option<FencingToken>,
    /// Whether the process, of this node, has given the strong name up: the store keeps the entry
    /// until the lease has ended.
    pub is_given_up: bool,
}

impl StrongNames {
    pub(crate) fn lease(&self) -> Option<LeaseLook> {
        let figures = self.shared.with(|machine, now| machine.figures(now));
        Some(LeaseLook {
            left: figures.left?,
            whole: figures.whole,
            names: figures.names,
            locks: figures.locks,
            waiting: figures.waiting,
        })
    }

    pub(crate) fn store(&self) -> StoreLook {
        let (figures, now) = self.shared.with(|machine, now| (machine.figures(now), now));
        let lost_for =
            (!figures.is_known).then(|| now.since(figures.lost_at.unwrap_or(self.shared.begun())));
        StoreLook {
            what: self.describe_store(),
            lost_for,
            waiting: figures.asked,
        }
    }

    /// Returns the number of names with entries in the store.
    pub(crate) fn count(&self) -> usize {
        self.shared.with(|machine, _| machine.cache.names())
    }

    /// Returns the first names with their owners, in the order of their texts.
    pub(crate) fn owners(&self, most: usize) -> Vec<NameLook> {
        let (first, owned) = self.shared.with(|machine, now| {
            let owned = machine.all_owned(now);
            (machine.cache.first_names(most), owned)
        });
        let look = |(name, named): (Box<str>, super::cache::Named)| {
            let owner = Owner::read(&named.value, named.revision, &self.shared.scheduler)?;
            let is_given_up = owner.node == self.own.node && !owned.contains(&named.revision);
            Some(NameLook {
                name,
                pid: owner.pid,
                node: owner.node,
                token: Some(owner.token),
                is_given_up,
            })
        };
        // An entry of a later version has no owner that this version can read.
        first.into_iter().filter_map(look).collect()
    }
}
