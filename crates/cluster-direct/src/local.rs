//! A node of the programs of a machine, without settings.

use crate::direct::Direct;
use ganger_cluster::{Cluster, JoinError};
use ganger_sched::Handle;

/// Makes the scheduler a node of the programs of this machine, over [`Direct::local`]. Its name is
/// the scheduler's node name. Types of messages with a codec, kinds and settings need
/// [`Cluster::builder`].
///
/// ```no_run
/// use ganger_sched::Scheduler;
///
/// let scheduler = Scheduler::builder().node("alpha").start()?;
/// let node = ganger_cluster_direct::join_local(&scheduler)?;
/// println!("{:?}", node.nodes());
/// # Ok::<(), ganger_proc_api::BoxError>(())
/// ```
///
/// # Errors
/// [`JoinError`]: the scheduler has no node name, for instance, or has joined a cluster.
pub fn join_local(scheduler: &Handle) -> Result<Cluster, JoinError> {
    Cluster::builder().engine(Direct::local()).join(scheduler)
}
