//! The members of a group at a moment, as senders see them.

use ganger_proc_api::NodeName;
use ganger_sched::Address;

/// A member as senders see it.
pub(super) struct Member {
    pub(super) process: Address,
    /// None for a process of this node.
    pub(super) node: Option<NodeName>,
    /// The bits of its node's name and its id, mixed. In a scope of a cluster alike on all nodes.
    pub(super) identity: u64,
}

impl Member {
    pub(super) fn new(process: &Address, own: Option<NodeName>) -> Self {
        let pid = process.pid();
        let node = pid.node().or(own);
        let node_hash = node.map_or(0, |node| text_hash(0, node.as_str()));
        Self {
            process: process.clone(),
            node: pid.node(),
            identity: mixed(pid.id() ^ node_hash),
        }
    }
}

/// The members of a group at a moment, each once. In a scope of a cluster those of this node come
/// first, and then the others, by their nodes.
#[derive(Default)]
pub(super) struct Snapshot {
    members: Vec<Member>,
    here: usize,
}

impl Snapshot {
    pub(super) fn new(mut members: Vec<Member>, is_carried: bool) -> Self {
        let mut here = members.len();
        if is_carried {
            // Stable: members of a node stay in the order in which they have joined.
            members.sort_by_key(|it| it.node);
            here = members.partition_point(|it| it.node.is_none());
        }
        Self { members, here }
    }

    pub(super) fn all(&self) -> &[Member] {
        &self.members
    }

    /// Returns the members with direct sends.
    pub(super) fn here(&self) -> &[Member] {
        &self.members[..self.here]
    }

    /// Returns the members with sends through their nodes.
    pub(super) fn elsewhere(&self) -> &[Member] {
        &self.members[self.here..]
    }
}

/// Returns the bits of a number, mixed. The key is secret, so this need not be. (SplitMix64)
pub(super) fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the bits of a text, mixed into those of a key, and alike in all programs.
pub(super) fn text_hash(key: u64, text: &str) -> u64 {
    let start = mixed(key ^ text.len() as u64);
    text.as_bytes().chunks(8).fold(start, |hash, part| {
        let mut eight = [0; 8];
        eight[..part.len()].copy_from_slice(part);
        mixed(hash ^ u64::from_le_bytes(eight))
    })
}
