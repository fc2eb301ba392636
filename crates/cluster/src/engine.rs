//! The carrier below sessions, and the calls that it makes.
//!
//! A carrier may lose, repeat and reorder frames, and need not say so: sessions mend that. Only
//! the name of the sender must be right.

use crate::id::{Lane, NodeId};
use crate::store::Store;
use crate::wire::MAX_FRAME;
use bytes::Bytes;
use ganger_sched::Handle;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Carries frames between nodes.
pub trait Engine: Send + Sync {
    /// Starts to carry frames for the node `me`. The engine calls `sink` from any thread, until it
    /// stops.
    ///
    /// # Errors
    ///
    /// The engine can't start: it runs already, for instance, or its address is in use.
    fn start(&self, me: &NodeId, sink: Arc<dyn EngineSink>) -> Result<(), EngineError>;

    /// Starts the engine as [`start`](Self::start) does, for a node of this scheduler. The engine
    /// may run its processes there, and a stop of the scheduler must leave these alone. By default,
    /// [`start`](Self::start).
    ///
    /// # Errors
    /// The errors of [`start`](Self::start).
    fn start_in(
        &self,
        scheduler: &Handle,
        me: &NodeId,
        sink: Arc<dyn EngineSink>,
    ) -> Result<(), EngineError> {
        let _ = scheduler;
        self.start(me, sink)
    }

    /// Returns the number of the engine's processes in the node's scheduler. A stop does not wait
    /// for them before the node leaves. None by default.
    fn processes(&self) -> usize {
        0
    }

    /// Carries a frame, and never blocks. The engine may serve `Lane::Control` first. False: the
    /// frame is not taken, and the engine calls [`EngineSink::writable`] later.
    fn send(&self, to: &NodeId, lane: Lane, frame: Bytes) -> bool;

    /// Returns the largest frame that the engine carries, at most [`MAX_FRAME`].
    fn max_frame(&self) -> usize {
        MAX_FRAME
    }

    /// Returns the consistent store of the engine, if any, once the engine has started. None by
    /// default. A node takes this store unless [`Builder::store`](crate::Builder::store) sets
    /// another.
    fn store(&self) -> Option<Arc<dyn Store>> {
        None
    }

    /// Stops. Frames taken before leave if they can within this time. In a step of the node's
    /// scheduler, an engine with processes there returns at once, and they end in this time.
    fn stop(&self, within: Duration);
}

/// An engine that its maker keeps too, for its figures for instance.
impl<E: Engine + ?Sized> Engine for Arc<E> {
    fn start(&self, me: &NodeId, sink: Arc<dyn EngineSink>) -> Result<(), EngineError> {
        (**self).start(me, sink)
    }

    fn start_in(
        &self,
        scheduler: &Handle,
        me: &NodeId,
        sink: Arc<dyn EngineSink>,
    ) -> Result<(), EngineError> {
        (**self).start_in(scheduler, me, sink)
    }

    fn processes(&self) -> usize {
        (**self).processes()
    }

    fn send(&self, to: &NodeId, lane: Lane, frame: Bytes) -> bool {
        (**self).send(to, lane, frame)
    }

    fn max_frame(&self) -> usize {
        (**self).max_frame()
    }

    fn store(&self) -> Option<Arc<dyn Store>> {
        (**self).store()
    }

    fn stop(&self, within: Duration) {
        (**self).stop(within);
    }
}

/// The calls of an engine to its node. All return at once.
pub trait EngineSink: Send + Sync {
    /// Takes a received frame.
    fn frame(&self, from: &NodeId, frame: Bytes);

    /// Tells that a node may be reached by now: a hint for
    /// [`Session::appeared`](crate::Session::appeared). Ignored by default.
    fn appeared(&self, _node: &NodeId) {}

    /// Tells that a node may be gone: a hint for [`Session::vanished`](crate::Session::vanished).
    /// Ignored by default.
    fn vanished(&self, _node: &NodeId) {}

    /// Tells that the engine takes frames for a node again, after it has refused some: a call for
    /// [`Session::writable`](crate::Session::writable). Ignored by default.
    fn writable(&self, _to: &NodeId) {}
}

/// An engine can't start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The node runs already.
    #[error("the node {0} runs already")]
    Running(NodeId),
    /// A reason of the engine's own.
    #[error("the engine can't start: {0}")]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}
