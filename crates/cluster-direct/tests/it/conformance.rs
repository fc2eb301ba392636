//! The cases that each engine must pass, over TCP with a cookie, and over TLS: with a scheduler of
//! the engine's own, and as a guest in the node's.

use crate::issue::issue;
use crate::support::until;
use ganger_cluster::conformance::{CHILD, Harness, child, scheduler, types};
use ganger_cluster::{Cluster, Engine, Settings};
use ganger_cluster_direct::Direct;
use ganger_net::Net;
use ganger_sched::Scheduler;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

mod clear {
    ganger_cluster::cases!(super::Pair<false, false>);
}

mod secure {
    ganger_cluster::cases!(super::Pair<true, false>);
}

mod guest {
    ganger_cluster::cases!(super::Pair<false, true>);
}

mod secure_guest {
    ganger_cluster::cases!(super::Pair<true, true>);
}

/// A session whose peer is not heard ends after this time. A busy machine pauses a node for a
/// while.
const DEAD: Duration = Duration::from_secs(4);

/// A scheduler that is a node.
struct Node {
    // Dropped first: its stop lets the node leave.
    scheduler: Scheduler,
    cluster: Cluster,
    engine: Direct,
}

impl Node {
    fn start(
        name: &str,
        listen: &str,
        seed: Option<SocketAddr>,
        keys: Option<&Path>,
        is_guest: bool,
    ) -> Self {
        let engine = Direct::listen(listen).seeds(seed.map(|it| it.to_string()));
        let engine = match keys {
            Some(keys) => engine.keys(keys.join(name)),
            None => engine.cookie(crate::support::COOKIE),
        };
        let mut builder = scheduler(name);
        if is_guest {
            builder = builder.driver(Net::new().unwrap());
        }
        let scheduler = builder.start().unwrap();
        let mut settings = Settings::default();
        settings.dead = DEAD;
        let cluster = Cluster::builder()
            .engine(engine.clone())
            .settings(settings)
            .types(types)
            .kind(CHILD, child)
            .join(&scheduler)
            .unwrap();
        Self {
            scheduler,
            cluster,
            engine,
        }
    }
}

/// Two nodes on loopback.
struct Pair<const IS_SECURE: bool, const IS_GUEST: bool> {
    near: Node,
    far: Node,
    keys: TempDir,
}

impl<const IS_SECURE: bool, const IS_GUEST: bool> Pair<IS_SECURE, IS_GUEST> {
    fn keys(folder: &TempDir) -> Option<&Path> {
        IS_SECURE.then(|| folder.path())
    }
}

impl<const IS_SECURE: bool, const IS_GUEST: bool> Harness for Pair<IS_SECURE, IS_GUEST> {
    fn start() -> Self {
        let keys = tempfile::tempdir().unwrap();
        issue(keys.path(), &["near", "far"], [2020, 2100]).unwrap();
        let near = Node::start("near", "127.0.0.1:0", None, Self::keys(&keys), IS_GUEST);
        let seed = near.engine.local_addr();
        let far = Node::start("far", "127.0.0.1:0", seed, Self::keys(&keys), IS_GUEST);
        until("the nodes are connected", || {
            [&near, &far].iter().all(|it| it.cluster.nodes().len() == 1)
        });
        Self { near, far, keys }
    }

    fn near(&self) -> &Scheduler {
        &self.near.scheduler
    }

    fn far(&self) -> &Scheduler {
        &self.far.scheduler
    }

    fn clusters(&self) -> Option<[&Cluster; 2]> {
        Some([&self.near.cluster, &self.far.cluster])
    }

    fn cut(&self) -> bool {
        self.near.engine.stop(Duration::ZERO);
        true
    }

    /// As after a kill: without a farewell, and at the same port.
    fn restart_far(&mut self) -> bool {
        let address = self.far.engine.local_addr().unwrap().to_string();
        self.far.engine.stop(Duration::ZERO);
        self.far = Node::start("far", &address, None, Self::keys(&self.keys), IS_GUEST);
        until("the nodes are connected", || {
            let up = self.near.cluster.nodes();
            up.iter()
                .any(|(_, it)| *it == self.far.cluster.incarnation())
        });
        true
    }
}
