//! The remote of a scheduler, and the calls that go to it.

use crate::api::handle::Handle;
use crate::process::remote::Remote;
use ganger_proc_api::{EnvelopeReceiver, Pid};
use std::fmt;
use std::sync::Arc;

/// The scheduler has a remote already. The refused remote is inside.
#[derive(thiserror::Error)]
#[error("the scheduler has a remote already: one crate connects it to other nodes")]
pub struct RemoteError {
    /// The refused remote.
    pub remote: Arc<dyn Remote>,
}

impl fmt::Debug for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteError").finish_non_exhaustive()
    }
}

impl Handle {
    /// Sets the remote as [`Builder::remote`](crate::Builder::remote) does, for a scheduler that is
    /// built: for crates that connect it to other nodes.
    ///
    /// # Errors
    /// [`RemoteError`], with the remote inside, when the scheduler has a remote.
    pub fn set_remote(&self, remote: Arc<dyn Remote>) -> Result<(), RemoteError> {
        let set = self.shared.remote.set(remote);
        set.map_err(|remote| RemoteError { remote })
    }

    /// Sets the router as [`Builder::router`](crate::Builder::router) does, for a scheduler that is
    /// built: for crates that connect it to other nodes.
    ///
    /// # Errors
    /// The receiver comes back when the scheduler has a router.
    pub fn set_router(
        &self,
        router: Arc<dyn EnvelopeReceiver>,
    ) -> Result<(), Arc<dyn EnvelopeReceiver>> {
        if self.shared.config.router.is_some() {
            return Err(router);
        }
        self.shared.late_router.set(router)
    }

    /// Returns the remote, if the scheduler has one.
    #[must_use]
    pub fn remote(&self) -> Option<&Arc<dyn Remote>> {
        self.shared.remote.get()
    }

    /// Returns the PID as the scheduler knows it: without the node, if the node is the scheduler's
    /// own.
    #[must_use]
    pub fn canonical(&self, pid: Pid) -> Pid {
        self.shared.canonical(pid)
    }

    /// Returns the PID as other nodes know it: with the node of the scheduler, if it has none.
    #[must_use]
    pub fn absolute(&self, pid: Pid) -> Pid {
        match pid.node() {
            None => pid.with_node(self.shared.node),
            Some(_) => pid,
        }
    }
}
