//! The names of a cluster, for observers.

use super::cluster::Cluster;
use super::strong::{LeaseLook, NameLook, StoreLook};

/// The names of a cluster, as a node knows them: see [`Cluster::owners`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owners {
    /// How many names are known that [`Cluster::register_name`] has given.
    pub eventual: usize,
    /// How many strong names have entries in the store, as its watch has told.
    pub strong: usize,
    /// The first names: strong names first, each kind in the order of the texts.
    pub names: Vec<NameLook>,
}

impl Cluster {
    /// Returns at most `most` names of the cluster with their owners. While the store is out of
    /// reach, strong names of other nodes are as they were. O(known strong names × log(most) +
    /// most); holds the lock of the node's names meanwhile.
    #[must_use]
    pub fn owners(&self, most: usize) -> Owners {
        let base = &self.core.base;
        let strong = base.strong.get();
        let mut names = strong.map_or_else(Vec::new, |strong| strong.owners(most));
        let scheduler = base.scheduler.upgrade();
        let eventual = base.directory.first_names(most - names.len());
        names.extend(eventual.into_iter().map(|(name, node, pid)| NameLook {
            name: (*name).into(),
            pid: scheduler.as_ref().map_or(pid, |it| it.canonical(pid)),
            node: node.as_str().into(),
            token: None,
            is_given_up: false,
        }));
        let (eventual, strong) = self.name_counts();
        Owners {
            eventual,
            strong,
            names,
        }
    }

    /// Returns the numbers of known names of both kinds, as [`Owners`] has them. O(1).
    #[must_use]
    pub fn name_counts(&self) -> (usize, usize) {
        let base = &self.core.base;
        let strong = base.strong.get().map_or(0, |strong| strong.count());
        (base.directory.name_count(), strong)
    }

    /// Returns the lease of the node, if any. The node has a lease from the first strong name or
    /// lock on, until no process of the node has or wants another. O(claims of the node), at most
    /// 65,536; holds the lock of the node's names meanwhile.
    #[must_use]
    pub fn lease(&self) -> Option<LeaseLook> {
        self.core.base.strong.get()?.lease()
    }

    /// Returns the consistent store of the node, if any, as the node's watch sees it: a store that
    /// still tells of changes counts as reachable. Costs as much as [`lease`](Self::lease).
    #[must_use]
    pub fn store_look(&self) -> Option<StoreLook> {
        let strong = self.core.base.strong.get()?;
        Some(strong.store())
    }
}
