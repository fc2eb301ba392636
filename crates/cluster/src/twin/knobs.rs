//! The twin itself: the knobs, the clock, and the engine of each node.

use super::faults::{Counts, Faults};
use super::flight::{Flight, WayState};
use crate::engine::{Engine, EngineError, EngineSink};
use crate::id::{Lane, NodeId};
use bytes::Bytes;
use ganger_proc_api::Instant;
use ganger_sync::sync::{Condvar, Mutex, lock};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// An engine between nodes of a single program. A clone is the same twin.
///
/// ```
/// use bytes::Bytes;
/// use ganger_cluster::{Engine, EngineSink, Lane, NodeId, Twin};
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
///
/// #[derive(Default)]
/// struct Inbox(Mutex<Vec<Bytes>>);
///
/// impl EngineSink for Inbox {
///     fn frame(&self, _: &NodeId, frame: Bytes) {
///         self.0.lock().unwrap().push(frame);
///     }
/// }
///
/// let twin = Twin::new(7);
/// let (alpha, beta) = (NodeId::new("alpha")?, NodeId::new("beta")?);
/// let inbox = Arc::new(Inbox::default());
/// twin.engine(&beta).start(&beta, inbox.clone())?;
/// assert!(twin.engine(&alpha).send(&beta, Lane::Data, Bytes::from("frame")));
/// twin.advance(Duration::from_millis(1));
/// assert_eq!(*inbox.0.lock().unwrap(), ["frame"]);
///
/// twin.cut(&alpha, &beta);
/// twin.engine(&alpha).send(&beta, Lane::Data, Bytes::from("lost"));
/// twin.advance(Duration::from_millis(1));
/// assert_eq!(twin.counts().lost, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Twin {
    pub(super) flight: Arc<Mutex<Flight>>,
    /// For the thread of the clock.
    pub(super) changed: Arc<Condvar>,
}

impl Twin {
    /// Creates a twin without faults, at time 0. All chance comes from the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let flight = Arc::new(Mutex::new(Flight::new(seed)));
        let changed = Arc::default();
        Self { flight, changed }
    }

    /// Returns the engine of a node.
    #[must_use]
    pub fn engine(&self, node: &NodeId) -> TwinEngine {
        TwinEngine {
            twin: self.clone(),
            node: node.clone().into(),
            run: Arc::default(),
        }
    }

    /// Returns the engine of the node that starts it.
    #[must_use]
    pub fn port(&self) -> TwinEngine {
        TwinEngine {
            twin: self.clone(),
            node: OnceLock::new(),
            run: Arc::default(),
        }
    }

    /// Returns the time of the twin.
    #[must_use]
    pub fn now(&self) -> Instant {
        lock(&self.flight).now
    }

    /// Returns when the next frame arrives.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Instant> {
        lock(&self.flight).next_arrival()
    }

    /// Moves the clock, and delivers all that arrives until then.
    pub fn advance(&self, time: Duration) {
        self.advance_to(self.now() + time);
    }

    /// Moves the clock to a moment, and delivers all that arrives until then. An earlier moment
    /// leaves the clock where it is.
    pub fn advance_to(&self, end: Instant) {
        loop {
            // The sinks are called without the lock: they may send.
            let calls = lock(&self.flight).step(end);
            let Some(calls) = calls else {
                return;
            };
            for call in calls {
                call.make();
            }
        }
    }

    /// Sets the faults of all ways without faults of their own.
    pub fn faults(&self, faults: Faults) {
        lock(&self.flight).faults = faults;
    }

    fn way(&self, from: &NodeId, to: &NodeId, change: impl FnOnce(&mut WayState)) {
        let mut flight = lock(&self.flight);
        change(flight.ways.entry((from.clone(), to.clone())).or_default());
    }

    /// Sets the faults of the way from a node to another.
    pub fn faults_between(&self, from: &NodeId, to: &NodeId, faults: Faults) {
        self.way(from, to, |way| way.faults = Some(faults));
    }

    /// Gives the way from a node to another the faults of all.
    pub fn usual_faults_between(&self, from: &NodeId, to: &NodeId) {
        self.way(from, to, |way| way.faults = None);
    }

    /// Cuts a way: from now on all frames of `from` to `to` are lost. The other direction is not
    /// cut.
    pub fn cut(&self, from: &NodeId, to: &NodeId) {
        self.way(from, to, |way| way.is_cut = true);
    }

    /// Ends a cut.
    pub fn heal(&self, from: &NodeId, to: &NodeId) {
        self.way(from, to, |way| way.is_cut = false);
    }

    /// Holds all frames for a node. The program does not run the node meanwhile.
    pub fn pause(&self, node: &NodeId) {
        let mut flight = lock(&self.flight);
        flight.nodes.entry(node.clone()).or_default().is_paused = true;
    }

    /// Ends a pause: the held frames arrive with the next move of the clock.
    pub fn resume(&self, node: &NodeId) {
        lock(&self.flight).resume(node);
    }

    /// Returns whether a node is paused.
    #[must_use]
    pub fn is_paused(&self, node: &NodeId) -> bool {
        let flight = lock(&self.flight);
        flight.nodes.get(node).is_some_and(|node| node.is_paused)
    }

    /// Takes a node away at once. Frames under way to it reach its successor, if that starts soon.
    pub fn crash(&self, node: &NodeId) {
        lock(&self.flight).leave(node);
    }

    /// Sets whether nodes are told of starts and crashes of other nodes, as by a broken connection.
    /// Off at first.
    pub fn hints(&self, tells: bool) {
        lock(&self.flight).tells_hints = tells;
    }

    /// Carries frames up to this size, as [`Engine::max_frame`] then says. Larger frames are lost.
    pub fn small(&self, max_frame: usize) {
        lock(&self.flight).max_frame = max_frame;
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        lock(&self.flight).counts
    }
}

impl fmt::Debug for Twin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Twin")
            .field("now", &self.now())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

/// The engine of a node in a [`Twin`].
#[derive(Debug, Clone)]
pub struct TwinEngine {
    twin: Twin,
    node: OnceLock<NodeId>,
    /// The run of the node that has started last with this engine.
    run: Arc<Mutex<Option<u64>>>,
}

impl TwinEngine {
    /// Returns whether the node has crashed, or another run has its name.
    fn is_of_the_past(&self, flight: &Flight, node: &NodeId) -> bool {
        lock(&self.run).is_some_and(|run| !flight.is_present(node, run))
    }
}

impl Engine for TwinEngine {
    fn start(&self, me: &NodeId, sink: Arc<dyn EngineSink>) -> Result<(), EngineError> {
        let joined = lock(&self.twin.flight).join(me, sink);
        let run = joined.ok_or_else(|| EngineError::Running(me.clone()))?;
        let _first = self.node.set(me.clone());
        *lock(&self.run) = Some(run);
        self.twin.changed.notify_all();
        Ok(())
    }

    fn send(&self, to: &NodeId, lane: Lane, frame: Bytes) -> bool {
        let Some(node) = self.node.get() else {
            return false;
        };
        let mut flight = lock(&self.twin.flight);
        if self.is_of_the_past(&flight, node) {
            return true;
        }
        let is_taken = flight.send((node.clone(), to.clone()), lane, &frame);
        if flight.runs {
            self.twin.changed.notify_all();
        }
        is_taken
    }

    fn max_frame(&self) -> usize {
        lock(&self.twin.flight).max_frame
    }

    fn stop(&self, _within: Duration) {
        if let Some(node) = self.node.get() {
            let mut flight = lock(&self.twin.flight);
            if !self.is_of_the_past(&flight, node) {
                flight.leave(node);
            }
        }
    }
}
