//! Names of processes in a cluster, with their holders, as a node knows them.

use ganger_proc_api::{NodeName, Pid};
use ganger_sched::Recipient;
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// A process has lost its name in the cluster: two nodes had given the name while they were not
/// connected, and the entry of the other is older. The process lives on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NameRevoked {
    /// The name.
    pub name: Arc<str>,
    /// The process that has lost the name.
    pub process: Pid,
    /// The process with the name.
    pub holder: Pid,
}

/// A process was given no name in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("can't give {pid} the name {name:?} in the cluster: {kind}")]
pub struct ClusterNameError {
    /// The name.
    pub name: Box<str>,
    /// The process.
    pub pid: Pid,
    /// The reason.
    pub kind: ClusterNameErrorKind,
}

/// Why a process was given no name in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClusterNameErrorKind {
    /// Another process has the name.
    #[error("the name is taken by {holder}")]
    Taken {
        /// The other process.
        holder: Pid,
    },
    /// The process has ended.
    #[error("the process has ended")]
    Ended,
    /// The process is of another node: give it the name there.
    #[error("the process is of another node, which alone may give it a name")]
    Elsewhere,
    /// The name is too long for other nodes.
    #[error("the name is longer than 255 bytes")]
    TooLong,
    /// The node has as many entries as other nodes take.
    #[error("the node has as many entries as other nodes take: free names first")]
    Full,
}

/// A process with a name.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) node: NodeName,
    pub(super) pid: Pid,
    /// When the name was given, by the clock of its node.
    since: u64,
    /// Of an own entry, from 1 on.
    pub(super) number: u64,
    /// Of an own entry: to be told of its loss.
    pub(super) lost: Option<Recipient<NameRevoked>>,
}

impl Holder {
    /// Returns the rank of the holder: the lowest wins.
    fn rank(&self) -> (u64, &'static str) {
        (self.since, self.node.as_str())
    }

    fn is_own(&self) -> bool {
        self.number > 0
    }
}

/// The holders of each name, one for each node at most.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_name: BTreeMap<Arc<str>, Vec<Holder>>,
    last: u64,
}

impl Names {
    pub(super) fn winner(&self, name: &str) -> Option<&Holder> {
        winner(self.by_name.get(name)?)
    }

    pub(super) fn all(&self) -> Vec<(Arc<str>, Pid)> {
        let all = self.by_name.iter();
        let all = all.filter_map(|(name, it)| Some((Arc::clone(name), winner(it)?.pid)));
        all.collect()
    }

    /// Returns the number of known names.
    pub(super) fn count(&self) -> usize {
        self.by_name.len()
    }

    /// Returns the first names, in the order of their texts, with their nodes and processes.
    pub(super) fn first(&self, most: usize) -> Vec<(Arc<str>, NodeName, Pid)> {
        let first = self.by_name.iter().take(most);
        let first = first.filter_map(|(name, holders)| {
            let holder = winner(holders)?;
            Some((Arc::clone(name), holder.node, holder.pid))
        });
        first.collect()
    }

    pub(super) fn own(&self, name: &str) -> Option<&Holder> {
        self.by_name.get(name)?.iter().find(|it| it.is_own())
    }

    /// Inserts an own entry, and returns its number.
    pub(super) fn insert_own(
        &mut self,
        name: &Arc<str>,
        node: NodeName,
        pid: Pid,
        since: u64,
        lost: Recipient<NameRevoked>,
    ) -> u64 {
        self.last += 1;
        let (number, lost) = (self.last, Some(lost));
        let holders = self.by_name.entry(Arc::clone(name)).or_default();
        holders.push(Holder {
            node,
            pid,
            since,
            number,
            lost,
        });
        number
    }

    pub(super) fn take_own(&mut self, name: &str) -> Option<Holder> {
        let holders = self.by_name.get_mut(name)?;
        let place = holders.iter().position(Holder::is_own)?;
        let gone = holders.remove(place);
        if holders.is_empty() {
            self.by_name.remove(name);
        }
        Some(gone)
    }

    /// Sets the node's only entry for the name.
    pub(super) fn insert_far(&mut self, name: &Arc<str>, node: NodeName, pid: Pid, since: u64) {
        let holders = self.by_name.entry(Arc::clone(name)).or_default();
        holders.retain(|it| it.is_own() || it.node != node);
        holders.push(Holder {
            node,
            pid,
            since,
            number: 0,
            lost: None,
        });
    }

    pub(super) fn remove_far(&mut self, name: &str, pid: Pid) {
        let Some(holders) = self.by_name.get_mut(name) else {
            return;
        };
        holders.retain(|it| it.is_own() || it.pid != pid);
        if holders.is_empty() {
            self.by_name.remove(name);
        }
    }

    /// Returns the own process and the winner, where the name has an own entry and another.
    pub(super) fn conflict(&self, name: &str) -> Option<(Pid, Pid)> {
        let holders = self.by_name.get(name).filter(|it| it.len() > 1)?;
        let own = holders.iter().find(|it| it.is_own())?;
        Some((own.pid, winner(holders)?.pid))
    }
}

fn winner(holders: &[Holder]) -> Option<&Holder> {
    holders.iter().min_by_key(|it| it.rank())
}
