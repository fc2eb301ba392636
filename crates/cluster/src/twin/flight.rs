//! Frames under way: their loss, and the times of their arrival.

use super::faults::{Counts, Faults};
use crate::engine::EngineSink;
use crate::id::{Lane, NodeId};
use crate::wire::MAX_FRAME;
use bytes::Bytes;
use fastrand::Rng;
use ganger_proc_api::Instant;
use ganger_sched::internal::choose;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// From node, to node.
pub(super) type Way = (NodeId, NodeId);

/// A frame under way.
struct Moving {
    way: Way,
    frame: Bytes,
    /// Whether the frame counts against the room of its way.
    counts: bool,
}

#[derive(Default)]
pub(super) struct WayState {
    /// Its own faults, if it has some.
    pub(super) faults: Option<Faults>,
    pub(super) is_cut: bool,
    /// No frame in order arrives before.
    last: Option<Instant>,
    /// When the way has carried all frames sent so far.
    free_at: Option<Instant>,
    /// Bytes under way.
    load: usize,
    has_refused: bool,
}

#[derive(Default)]
pub(super) struct Node {
    pub(super) sink: Option<Arc<dyn EngineSink>>,
    pub(super) is_paused: bool,
    /// The run of the node: an engine of an earlier run carries nothing.
    pub(super) run: u64,
    /// Frames held by a pause.
    held: Vec<Moving>,
}

/// A call of a node's sink, made without the lock of the twin.
pub(super) struct Call {
    /// The node.
    pub(super) at: NodeId,
    sink: Arc<dyn EngineSink>,
    what: What,
}

enum What {
    Frame(NodeId, Bytes),
    Appeared(NodeId),
    Vanished(NodeId),
    Writable(NodeId),
}

impl Call {
    pub(super) fn make(self) {
        let sink = self.sink;
        match self.what {
            What::Frame(from, frame) => sink.frame(&from, frame),
            What::Appeared(node) => sink.appeared(&node),
            What::Vanished(node) => sink.vanished(&node),
            What::Writable(node) => sink.writable(&node),
        }
    }
}

pub(super) struct Flight {
    pub(super) now: Instant,
    random: Rng,
    pub(super) faults: Faults,
    pub(super) max_frame: usize,
    pub(super) tells_hints: bool,
    pub(super) ways: BTreeMap<Way, WayState>,
    pub(super) nodes: BTreeMap<NodeId, Node>,
    /// By arrival, then in the order of their sends.
    moving: BTreeMap<(Instant, u64), Moving>,
    number: u64,
    /// Hints to be told, and calls left over.
    hints: Vec<Call>,
    pub(super) counts: Counts,
    /// A thread moves the clock.
    pub(super) runs: bool,
}

impl Flight {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            now: Instant::from_nanos(0),
            random: Rng::with_seed(seed),
            faults: Faults::default(),
            max_frame: MAX_FRAME,
            tells_hints: false,
            ways: BTreeMap::new(),
            nodes: BTreeMap::new(),
            moving: BTreeMap::new(),
            number: 0,
            hints: Vec::new(),
            counts: Counts::default(),
            runs: false,
        }
    }

    /// Draws whether an event with this share happens. In a simulation, chance is the simulation's.
    fn chance(&mut self, what: &'static str, share: u32) -> bool {
        if share == 0 {
            return false;
        }
        // Without faults the choice is the first.
        match choose(what, 1000) {
            Some(chosen) => 999 - chosen < share as usize,
            None => self.random.u32(..1000) < share,
        }
    }

    fn up_to(&mut self, what: &'static str, time: Duration) -> Duration {
        let most = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if most == 0 {
            return Duration::ZERO;
        }
        let micros = usize::try_from(time.as_micros()).unwrap_or(usize::MAX);
        match choose(what, micros.saturating_add(1)) {
            Some(chosen) => Duration::from_micros(chosen as u64),
            None => Duration::from_nanos(self.random.u64(..=most)),
        }
    }

    /// Sends a frame. Returns whether the frame was taken.
    pub(super) fn send(&mut self, way: Way, lane: Lane, frame: &Bytes) -> bool {
        let state = self.ways.entry(way.clone()).or_default();
        let faults = state.faults.unwrap_or(self.faults);
        if state.load > 0 && state.load + frame.len() > faults.room {
            state.has_refused = true;
            self.counts.refused += 1;
            return false;
        }
        let is_cut = state.is_cut;
        self.counts.sent += 1;
        if frame.len() > self.max_frame {
            self.counts.too_large += 1;
            return true;
        }
        if is_cut || self.chance("frame is lost", faults.drop[lane.index()]) {
            self.counts.lost += 1;
            return true;
        }
        let begin = self.begin(&way, frame.len(), &faults);
        self.put(&way, frame, begin, &faults, true);
        if self.chance("frame comes twice", faults.repeat) {
            self.counts.repeated += 1;
            self.put(&way, frame, begin, &faults, false);
        }
        true
    }

    /// Returns the faults of a way.
    pub(super) fn faults_of(&self, from: &NodeId, to: &NodeId) -> Faults {
        let way = self.ways.get(&(from.clone(), to.clone()));
        way.and_then(|way| way.faults).unwrap_or(self.faults)
    }

    /// Returns when the whole frame is on its way.
    fn begin(&mut self, way: &Way, length: usize, faults: &Faults) -> Instant {
        let Some(bandwidth) = faults.bandwidth.filter(|it| *it > 0) else {
            return self.now;
        };
        let state = self.ways.entry(way.clone()).or_default();
        let free = state.free_at.map_or(self.now, |at| at.max(self.now));
        let nanos = length as u128 * 1_000_000_000 / u128::from(bandwidth);
        let end = free + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        state.free_at = Some(end);
        end
    }

    fn put(&mut self, way: &Way, frame: &Bytes, begin: Instant, faults: &Faults, counts: bool) {
        let mut at = begin + faults.delay + self.up_to("frame takes", faults.jitter);
        let is_late = self.chance("frame is overtaken", faults.reorder);
        let late = if is_late {
            self.up_to("frame is late by", faults.late)
        } else {
            Duration::ZERO
        };
        let state = self.ways.entry(way.clone()).or_default();
        if is_late {
            at = at + late;
        } else {
            at = state.last.map_or(at, |last| last.max(at));
            state.last = Some(at);
        }
        if counts {
            state.load += frame.len();
        }
        let moving = Moving {
            way: way.clone(),
            frame: frame.clone(),
            counts,
        };
        self.number += 1;
        self.moving.insert((at, self.number), moving);
    }

    /// Moves the clock to the next arrival, if it comes by `end`. Returns the calls to be made.
    pub(super) fn step(&mut self, end: Instant) -> Option<Vec<Call>> {
        if !self.hints.is_empty() {
            return Some(std::mem::take(&mut self.hints));
        }
        let next = self.moving.first_entry();
        let next = next.filter(|it| it.key().0 <= end);
        let Some(next) = next else {
            self.now = self.now.max(end);
            return None;
        };
        self.now = self.now.max(next.key().0);
        let moving = next.remove();
        Some(self.arrive(moving))
    }

    fn arrive(&mut self, moving: Moving) -> Vec<Call> {
        let mut calls = Vec::new();
        let (from, to) = moving.way.clone();
        if moving.counts {
            let state = self.ways.entry(moving.way.clone()).or_default();
            state.load -= moving.frame.len();
            let is_writable = state.has_refused && state.load == 0;
            state.has_refused &= !is_writable;
            let sender = self.nodes.get(&from).and_then(|node| node.sink.clone());
            if let Some(sink) = sender.filter(|_| is_writable) {
                let what = What::Writable(to.clone());
                let at = from.clone();
                calls.push(Call { at, sink, what });
            }
        }
        let node = self.nodes.entry(to.clone()).or_default();
        if node.is_paused {
            let counts = false;
            node.held.push(Moving { counts, ..moving });
        } else if let Some(sink) = node.sink.clone() {
            self.counts.delivered += 1;
            let what = What::Frame(from, moving.frame);
            calls.push(Call { at: to, sink, what });
        } else {
            self.counts.lost += 1;
        }
        calls
    }

    /// Sets the time. Calls due by then stay until they are taken.
    pub(super) fn be_at(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Takes a single due call.
    pub(super) fn take_due(&mut self) -> Option<Call> {
        loop {
            if !self.hints.is_empty() {
                return Some(self.hints.remove(0));
            }
            self.hints = self.step(self.now)?;
        }
    }

    pub(super) fn next_arrival(&self) -> Option<Instant> {
        if !self.hints.is_empty() {
            return Some(self.now);
        }
        self.moving.keys().next().map(|(at, _)| *at)
    }

    /// Resumes a paused node: its held frames arrive now, in order.
    pub(super) fn resume(&mut self, name: &NodeId) {
        let node = self.nodes.entry(name.clone()).or_default();
        node.is_paused = false;
        for moving in std::mem::take(&mut node.held) {
            self.number += 1;
            self.moving.insert((self.now, self.number), moving);
        }
    }

    /// Takes a node's sink away. Frames under way stay: they may reach the next node of the name.
    pub(super) fn leave(&mut self, name: &NodeId) {
        let node = self.nodes.entry(name.clone()).or_default();
        let was_there = node.sink.take().is_some();
        node.run += 1;
        node.is_paused = false;
        self.counts.lost += std::mem::take(&mut node.held).len() as u64;
        if was_there {
            self.hint(name, What::Vanished);
        }
    }

    /// Adds a node's sink. Returns the number of the node's run, unless the node runs already.
    pub(super) fn join(&mut self, name: &NodeId, sink: Arc<dyn EngineSink>) -> Option<u64> {
        let node = self.nodes.entry(name.clone()).or_default();
        if node.sink.is_some() {
            return None;
        }
        node.sink = Some(sink);
        let run = node.run;
        self.hint(name, What::Appeared);
        Some(run)
    }

    /// Returns whether this is the present run of a node.
    pub(super) fn is_present(&self, name: &NodeId, run: u64) -> bool {
        self.nodes.get(name).is_some_and(|node| node.run == run)
    }

    fn hint(&mut self, name: &NodeId, what: fn(NodeId) -> What) {
        if !self.tells_hints {
            return;
        }
        for (other, node) in &self.nodes {
            if let Some(sink) = node.sink.clone().filter(|_| other != name) {
                let (at, what) = (other.clone(), what(name.clone()));
                self.hints.push(Call { at, sink, what });
            }
        }
    }
}
