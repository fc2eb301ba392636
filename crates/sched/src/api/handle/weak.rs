//! A handle for objects that the scheduler itself keeps.

use super::Handle;
use crate::runtime::shared::Shared;
use ganger_proc_api::{Envelope, EnvelopeReceiver, SendError, SendErrorKind};
use std::fmt;
use std::sync::Weak;

/// A [`Handle`] that does not keep the scheduler's memory alive.
///
/// For objects kept by the scheduler itself: factories, hooks (`Lifecycle`), processes, and
/// handlers until the workers have returned. If one of these keeps a `Handle`, it keeps the
/// scheduler's memory, and with it itself.
///
/// As a host for a router's node, it takes envelopes for the scheduler's own processes alone.
///
/// ```
/// use ganger_proc_api::{HostName, NodeName};
/// use ganger_relay::{Node, Router};
/// use ganger_sched::Scheduler;
/// use std::sync::Arc;
///
/// let node = Arc::new(Node::new(NodeName::new("alpha")?));
/// let router = Arc::new(Router::new(Arc::clone(&node)));
/// let scheduler = Scheduler::builder().node("alpha").host("orders").router(router).build()?;
/// node.add_host(scheduler.host_name(), Arc::new(scheduler.downgrade()))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct WeakHandle {
    pub(crate) shared: Weak<Shared>,
}

impl WeakHandle {
    /// Returns the handle, unless the scheduler is gone.
    #[must_use]
    pub fn upgrade(&self) -> Option<Handle> {
        self.shared.upgrade().map(|shared| Handle { shared })
    }
}

impl EnvelopeReceiver for WeakHandle {
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        match self.shared.upgrade() {
            Some(shared) => shared.deliver(envelope),
            None => Err(SendError::new(SendErrorKind::Stopping, envelope)),
        }
    }

    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        match self.shared.upgrade() {
            Some(shared) => shared.deliver_control(envelope),
            None => Err(SendError::new(SendErrorKind::Stopping, envelope)),
        }
    }
}

impl fmt::Debug for WeakHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WeakHandle").field(&self.upgrade()).finish()
    }
}
