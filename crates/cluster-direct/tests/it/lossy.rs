//! An engine that loses and repeats frames of the direct engine.

use bytes::Bytes;
use ganger_cluster::{Engine, EngineError, EngineSink, Lane, NodeId};
use ganger_cluster_direct::Direct;
use ganger_sched::Handle;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) struct Lossy {
    engine: Direct,
    /// Whether frames are lost.
    loses: Arc<AtomicBool>,
    random: Mutex<fastrand::Rng>,
}

impl Lossy {
    pub(crate) fn new(engine: Direct, loses: Arc<AtomicBool>, seed: u64) -> Self {
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        Self {
            engine,
            loses,
            random,
        }
    }
}

impl Engine for Lossy {
    fn start(&self, me: &NodeId, sink: Arc<dyn EngineSink>) -> Result<(), EngineError> {
        self.engine.start(me, sink)
    }

    fn start_in(
        &self,
        scheduler: &Handle,
        me: &NodeId,
        sink: Arc<dyn EngineSink>,
    ) -> Result<(), EngineError> {
        self.engine.start_in(scheduler, me, sink)
    }

    fn processes(&self) -> usize {
        self.engine.processes()
    }

    /// Loses a fifth of the frames, and has a tenth come twice.
    fn send(&self, to: &NodeId, lane: Lane, frame: Bytes) -> bool {
        // Ordering: Relaxed, the simulation has a single thread.
        if self.loses.load(Ordering::Relaxed) {
            let chance = self.random.lock().unwrap().u32(..10);
            match chance {
                0 | 1 => return true,
                2 => _ = self.engine.send(to, lane, frame.clone()),
                _ => {}
            }
        }
        self.engine.send(to, lane, frame)
    }

    fn stop(&self, within: Duration) {
        self.engine.stop(within);
    }
}
