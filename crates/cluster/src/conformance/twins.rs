//! Two nodes of the same program, over a twin.

use super::{CHILD, Harness, Threads, child, eventually, scheduler, types};
use crate::id::NodeId;
use crate::node::Cluster;
use crate::session::Settings;
use crate::twin::{Faults, Running, Twin};
use ganger_proc_api::NodeName;
use ganger_sched::{Handle, Scheduler};
use std::time::Duration;

/// Two nodes over a [`Twin`] with the time of the program.
pub struct Twins {
    schedulers: [Scheduler; 2],
    nodes: [Cluster; 2],
    twin: Twin,
    /// Dropped last.
    _running: Running,
}

/// A session whose peer is not heard ends after this time. A busy machine pauses a node for a
/// while.
const DEAD: Duration = Duration::from_secs(4);

/// Starts a node of the name.
fn node(twin: &Twin, name: &str, dead: Duration) -> (Scheduler, Cluster) {
    let scheduler = scheduler(name).start().expect("the scheduler starts");
    let settings = Settings {
        dead,
        ..Settings::default()
    };
    let node = Cluster::builder()
        .cluster("conformance")
        .cookie("secret")
        .engine(twin.port())
        .settings(settings)
        .types(types)
        .kind(CHILD, child)
        .join(&scheduler);
    (scheduler, node.expect("the node joins"))
}

impl Twins {
    /// Returns the twin, for its knobs.
    #[must_use]
    pub fn twin(&self) -> &Twin {
        &self.twin
    }

    /// Returns both nodes, the near first.
    #[must_use]
    pub fn nodes(&self) -> &[Cluster; 2] {
        &self.nodes
    }

    fn with(dead: Duration) -> Self {
        let twin = Twin::new(7);
        twin.hints(true);
        let running = twin.run();
        let [near, far] = NAMES.map(|name| node(&twin, name, dead));
        let harness = Self {
            schedulers: [near.0, far.0],
            nodes: [near.1, far.1],
            twin,
            _running: running,
        };
        eventually("the nodes are connected", || {
            harness.nodes.iter().all(|node| node.nodes().len() == 1)
        });
        harness
    }
}

/// The near node and the far.
const NAMES: [&str; 2] = ["near", "far"];

fn ids() -> [NodeId; 2] {
    NAMES.map(|name| NodeId::new(name).expect("it is a name"))
}

impl Harness for Twins {
    type Ground = Threads;

    fn start(_: Threads) -> Self {
        Self::with(DEAD)
    }

    fn start_frail(_: Threads, dead: Duration) -> Option<Self> {
        Some(Self::with(dead))
    }

    fn ground(&self) -> Threads {
        Threads
    }

    fn schedulers(&self) -> [&Handle; 2] {
        self.schedulers.each_ref().map(|it| &**it)
    }

    fn clusters(&self) -> Option<[&Cluster; 2]> {
        Some(self.nodes.each_ref())
    }

    fn disturb(&self) -> bool {
        self.twin.faults(Faults {
            drop: [200, 200],
            repeat: 100,
            reorder: 100,
            late: Duration::from_millis(5),
            ..Faults::default()
        });
        true
    }

    fn cut(&self) -> bool {
        let [near, far] = ids();
        self.twin.cut(&near, &far);
        self.twin.cut(&far, &near);
        true
    }

    fn pause_far(&self, is_paused: bool) {
        let [near, far] = ids();
        if is_paused {
            self.twin.pause(&far);
            self.twin.cut(&far, &near);
        } else {
            self.twin.heal(&far, &near);
            self.twin.resume(&far);
        }
    }

    fn cut_way(&self, is_cut: bool) {
        let [near, far] = ids();
        if is_cut {
            self.twin.cut(&near, &far);
        } else {
            self.twin.heal(&near, &far);
        }
    }

    fn throttle(&self, bytes: u64) {
        self.twin.faults(Faults {
            bandwidth: Some(bytes),
            room: 1 << 20,
            ..Faults::default()
        });
    }

    fn entries(&self) -> Option<[usize; 2]> {
        let [near, far] = NAMES.map(|name| NodeName::new(name).expect("it is a name"));
        let [at_near, at_far] = &self.nodes;
        Some([at_near.open_entries(far), at_far.open_entries(near)])
    }

    fn restart_far(&mut self) -> bool {
        let [_, far] = ids();
        self.twin.crash(&far);
        // The crashed node says nothing more: its engine is no part of the twin.
        let (scheduler, cluster) = node(&self.twin, "far", DEAD);
        let before = std::mem::replace(&mut self.schedulers[1], scheduler);
        self.nodes[1] = cluster;
        drop(before);
        eventually("the nodes are connected", || {
            let up = self.nodes[0].nodes();
            up.iter().any(|(_, it)| *it == self.nodes[1].incarnation())
        });
        true
    }
}
