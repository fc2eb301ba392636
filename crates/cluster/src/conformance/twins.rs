//! Two nodes of one program, over a twin.

use super::{CHILD, Harness, child, eventually, scheduler, types};
use crate::id::NodeId;
use crate::node::Cluster;
use crate::session::Settings;
use crate::twin::{Faults, Running, Twin};
use ganger_sched::Scheduler;
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
fn node(twin: &Twin, name: &str) -> (Scheduler, Cluster) {
    let scheduler = scheduler(name).start().expect("the scheduler starts");
    let dead = DEAD;
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
    /// The twin, for its knobs.
    #[must_use]
    pub fn twin(&self) -> &Twin {
        &self.twin
    }

    /// Both nodes, the near first.
    #[must_use]
    pub fn nodes(&self) -> &[Cluster; 2] {
        &self.nodes
    }
}

impl Harness for Twins {
    fn start() -> Self {
        let twin = Twin::new(7);
        twin.hints(true);
        let running = twin.run();
        let [near, far] = ["near", "far"].map(|name| node(&twin, name));
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

    fn near(&self) -> &Scheduler {
        &self.schedulers[0]
    }

    fn far(&self) -> &Scheduler {
        &self.schedulers[1]
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
        let [near, far] = ["near", "far"].map(|name| NodeId::new(name).expect("it is a name"));
        self.twin.cut(&near, &far);
        self.twin.cut(&far, &near);
        true
    }

    fn restart_far(&mut self) -> bool {
        let far = NodeId::new("far").expect("it is a name");
        self.twin.crash(&far);
        // The crashed node says nothing more: its engine is no part of the twin.
        let (scheduler, cluster) = node(&self.twin, "far");
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
