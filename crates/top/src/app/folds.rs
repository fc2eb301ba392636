//! The tree as visible rows.

use ganger_observe::api::{Tree, TreeNode};
use std::collections::HashSet;

/// The tree of an answer, with the folded nodes.
#[derive(Debug, Default)]
pub(crate) struct Folds {
    /// Whether there was an answer.
    pub(crate) is_there: bool,
    nodes: Vec<TreeNode>,
    /// The children of each node.
    children: Vec<Vec<usize>>,
    roots: Vec<usize>,
    pub(crate) others: u64,
    folded: HashSet<String>,
    visible: Vec<Branch>,
}

/// A visible node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Branch {
    /// Its place in the answer.
    pub(crate) node: usize,
    pub(crate) depth: usize,
    /// The processes below it, at all depths; a fold hides them.
    pub(crate) below: usize,
    pub(crate) is_folded: bool,
}

impl Folds {
    pub(crate) fn take(&mut self, tree: Tree) {
        self.is_there = true;
        self.nodes = tree.nodes;
        self.others = tree.others;
        self.children = vec![Vec::new(); self.nodes.len()];
        self.roots.clear();
        for (place, node) in self.nodes.iter().enumerate() {
            // A parent comes before its children, so no circle can close.
            let parent = node.parent.and_then(|it| usize::try_from(it).ok());
            match parent.filter(|it| *it < place) {
                Some(parent) => self.children[parent].push(place),
                None => self.roots.push(place),
            }
        }
        self.unfold();
    }

    pub(crate) fn visible(&self) -> &[Branch] {
        &self.visible
    }

    pub(crate) fn node(&self, branch: Branch) -> &TreeNode {
        &self.nodes[branch.node]
    }

    /// Returns the identity of a visible row.
    pub(crate) fn id(&self, branch: Branch) -> String {
        id(self.node(branch))
    }

    /// Hides or shows the nodes below a visible row. Returns whether the tree changes.
    pub(crate) fn fold(&mut self, row: usize, is_folded: bool) -> bool {
        let Some(&branch) = self.visible.get(row) else {
            return false;
        };
        let id = self.id(branch);
        let is_changed = match is_folded {
            true => branch.below > 0 && self.folded.insert(id),
            false => self.folded.remove(&id),
        };
        if is_changed {
            self.unfold();
        }
        is_changed
    }

    /// Returns the row of the parent.
    pub(crate) fn parent(&self, row: usize) -> Option<usize> {
        let depth = self.visible.get(row)?.depth;
        self.visible[..row].iter().rposition(|it| it.depth < depth)
    }

    /// Makes the visible rows, from the roots down.
    fn unfold(&mut self) {
        let mut below = vec![0; self.nodes.len()];
        for place in (0..self.nodes.len()).rev() {
            below[place] = self.children[place].iter().map(|it| below[*it] + 1).sum();
        }
        self.visible.clear();
        let mut open: Vec<_> = self.roots.iter().rev().map(|it| (*it, 0)).collect();
        while let Some((node, depth)) = open.pop() {
            let is_folded = self.folded.contains(&id(&self.nodes[node]));
            self.visible.push(Branch {
                node,
                depth,
                below: below[node],
                is_folded,
            });
            if !is_folded {
                let children = self.children[node].iter().rev();
                open.extend(children.map(|it| (*it, depth + 1)));
            }
        }
    }
}

fn id(node: &TreeNode) -> String {
    let name = node.name.as_deref().unwrap_or_default();
    let own = node.pid.as_deref().unwrap_or(name);
    format!("{} {own}", node.scheduler)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_observe::api::VERSION;

    fn tree(parents: &[Option<u64>]) -> Folds {
        let node = |(place, parent): (usize, &Option<u64>)| TreeNode {
            scheduler: 1,
            pid: Some(place.to_string()),
            parent: *parent,
            name: None,
            kind: "kind".to_owned(),
            is_supervisor: false,
            state: None,
            restarts: 0,
            last_cause: None,
        };
        let mut folds = Folds::default();
        folds.take(Tree {
            version: VERSION,
            nodes: parents.iter().enumerate().map(node).collect(),
            others: 0,
        });
        folds
    }

    fn shown(folds: &Folds) -> Vec<(usize, usize)> {
        folds
            .visible()
            .iter()
            .map(|it| (it.node, it.depth))
            .collect()
    }

    #[test]
    fn children_stand_below_their_parents_and_fold() {
        let mut folds = tree(&[None, None, Some(0), Some(2), Some(0), Some(1)]);
        let all = [(0, 0), (2, 1), (3, 2), (4, 1), (1, 0), (5, 1)];
        assert_eq!(shown(&folds), all);
        assert_eq!(folds.visible()[0].below, 3);
        assert_eq!(
            (folds.parent(2), folds.parent(3), folds.parent(0)),
            (Some(1), Some(0), None)
        );
        assert!(folds.fold(0, true) && !folds.fold(0, true));
        assert_eq!(shown(&folds), [(0, 0), (1, 0), (5, 1)]);
        assert!(folds.fold(0, false) && !folds.fold(0, false));
        assert_eq!(shown(&folds), all);
        assert!(!folds.fold(2, true), "a leaf does not fold");
        assert!(!folds.fold(99, true));
    }

    #[test]
    fn a_wrong_parent_makes_a_root() {
        let folds = tree(&[Some(0), Some(7), Some(u64::MAX), Some(1)]);
        assert_eq!(shown(&folds), [(0, 0), (1, 0), (3, 1), (2, 0)]);
    }
}
