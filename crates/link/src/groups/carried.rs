//! Scopes of groups, connected by a carrier with the scopes of other nodes.

use super::Groups;
use super::carrier::{GroupCarrier, MAX_JOINS};
use super::scope::Scopes;
use ganger_proc_api::NodeName;
use ganger_sched::Address;
use ganger_sync::sync::lock;
use std::fmt;
use std::sync::Arc;

/// The scopes of a node in its cluster. A clone is the same.
#[derive(Clone, Default)]
pub struct CarriedScopes(Arc<Scopes>);

impl CarriedScopes {
    /// Gives the scope with this name, at the node with this name. The scope knows nothing of
    /// [`Groups::of`] with the same name. A scope in use keeps its first carrier.
    #[must_use]
    pub fn groups(&self, node: NodeName, scope: &str, carrier: &Arc<dyn GroupCarrier>) -> Groups {
        Groups::found(&self.0, Some(node), scope, Some(carrier))
    }
}

impl fmt::Debug for CarriedScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(lock(&self.0.0).keys()).finish()
    }
}

/// Enters how often a process of another node is in a group from now on. O(n) for n joins or
/// leaves. Its node is in the PID of the process.
pub fn arrived(groups: &Groups, group: &Arc<str>, process: &Address, joins: usize) {
    groups.scope.arrived(group, process, joins.min(MAX_JOINS));
}
