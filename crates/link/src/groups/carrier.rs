//! The carrier of groups between nodes: for crates that connect nodes.
//!
//! **Protocol.** A node alone says how often each of its own processes is in a group.
//! 1. The scope calls [`joined`](GroupCarrier::joined) under its lock, so calls for a process and a
//!    group come in order; and [`changed`](GroupCarrier::changed) afterwards, without the lock.
//! 2. The carrier tells all nodes, and a node that connects gets all entries.
//! 3. The entries of another node are entered by [`arrived`](super::arrived). The entries of a lost
//!    node are entered as joined zero times. The caller keeps the scope by its
//!    [`Groups`](super::Groups) as long as entries are in.

use super::join_error::JoinErrorKind;
use ganger_proc_api::{Message, Pid, SendErrorKind};
use std::sync::Arc;

/// The longest name of a group or a scope of a cluster, in bytes.
pub const MAX_NAME: usize = 255;

/// How often a process may join a group of a cluster.
pub const MAX_JOINS: usize = 1024;

/// The most members in a call of [`GroupCarrier::broadcast`].
pub const MAX_TARGETS: usize = 4096;

/// Tells other nodes of members, and carries broadcasts. No call may block.
pub trait GroupCarrier: Send + Sync + 'static {
    /// Checks whether the process may join the group.
    ///
    /// # Errors
    /// The reason, if it may not.
    fn admits(&self, scope: &str, group: &str, process: Pid) -> Result<(), JoinErrorKind>;

    /// Hears that a process of this node is in the group this often from now on. The scope is
    /// locked.
    fn joined(&self, scope: &Arc<str>, group: &Arc<str>, process: Pid, joins: usize);

    /// Follows calls of [`joined`](Self::joined), without a lock.
    fn changed(&self);

    /// Returns a number that all nodes of the cluster have, and strangers can't know.
    fn key(&self) -> u64;

    /// Sends the message to processes of one other node, as a single message to the node. At most
    /// [`MAX_TARGETS`].
    ///
    /// # Errors
    /// The reason, if none of them gets it.
    fn broadcast(&self, members: &[Pid], message: Message) -> Result<(), SendErrorKind>;
}
