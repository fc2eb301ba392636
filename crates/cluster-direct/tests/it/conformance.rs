//! The cases that each engine must pass, over TCP with a cookie, and over TLS: with a scheduler of
//! the engine's own, and as a guest in the node's.

use crate::issue::issue;
use crate::support::until;
use ganger_chaos::{Faults, Proxy, Way};
use ganger_cluster::conformance::{CHILD, Harness, Threads, child, scheduler, types};
use ganger_cluster::{Cluster, Engine, Settings};
use ganger_cluster_direct::Direct;
use ganger_net::Net;
use ganger_proc_api::NodeName;
use ganger_sched::{Handle, Scheduler};
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

/// A scheduler as a node.
struct Node {
    // Dropped first: its stop lets the node leave.
    scheduler: Scheduler,
    cluster: Cluster,
    engine: Direct,
}

impl Node {
    fn start(
        name: &str,
        engine: Direct,
        keys: Option<&Path>,
        (is_guest, dead): (bool, Duration),
    ) -> Self {
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
        settings.dead = dead;
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
    /// Between both, in a pair that is frail. The far node has connected.
    proxy: Option<Proxy>,
}

impl<const IS_SECURE: bool, const IS_GUEST: bool> Pair<IS_SECURE, IS_GUEST> {
    fn keys(folder: &TempDir) -> Option<&Path> {
        IS_SECURE.then(|| folder.path())
    }

    fn connected(pair: Self) -> Self {
        until("the nodes are connected", || {
            let both = [&pair.near, &pair.far];
            both.iter().all(|it| it.cluster.nodes().len() == 1)
        });
        pair
    }

    /// Sets the faults of the proxy, if any, in both directions.
    fn faults(&self, faults: Faults) {
        if let Some(proxy) = &self.proxy {
            for way in Way::BOTH {
                proxy.faults(way, faults);
            }
        }
    }
}

/// Issues the keys of both nodes.
fn folder() -> TempDir {
    let keys = tempfile::tempdir().unwrap();
    issue(keys.path(), &["near", "far"], [2020, 2100]).unwrap();
    keys
}

impl<const IS_SECURE: bool, const IS_GUEST: bool> Harness for Pair<IS_SECURE, IS_GUEST> {
    type Ground = Threads;

    fn start(_: Threads) -> Self {
        let keys = folder();
        let near = Direct::listen("127.0.0.1:0");
        let near = Node::start("near", near, Self::keys(&keys), (IS_GUEST, DEAD));
        let seed = near.engine.local_addr().map(|it| it.to_string());
        let far = Direct::listen("127.0.0.1:0").seeds(seed);
        let far = Node::start("far", far, Self::keys(&keys), (IS_GUEST, DEAD));
        Self::connected(Self {
            near,
            far,
            keys,
            proxy: None,
        })
    }

    /// Starts two nodes with a proxy between. Neither knows the other's own address, so both dial
    /// through the proxy alone.
    fn start_frail(_: Threads, dead: Duration) -> Option<Self> {
        let keys = folder();
        let proxy = Proxy::new(7);
        let address = proxy.address();
        let engine = || Direct::listen("127.0.0.1:0").advertise(address);
        let near = Node::start("near", engine(), Self::keys(&keys), (IS_GUEST, dead));
        proxy.aim(near.engine.local_addr()?);
        let far = engine().seeds([address.to_string()]);
        let far = Node::start("far", far, Self::keys(&keys), (IS_GUEST, dead));
        Some(Self::connected(Self {
            near,
            far,
            keys,
            proxy: Some(proxy),
        }))
    }

    fn ground(&self) -> Threads {
        Threads
    }

    fn schedulers(&self) -> [&Handle; 2] {
        [&self.near.scheduler, &self.far.scheduler]
    }

    fn clusters(&self) -> Option<[&Cluster; 2]> {
        Some([&self.near.cluster, &self.far.cluster])
    }

    fn cut(&self) -> bool {
        self.near.engine.stop(Duration::ZERO);
        true
    }

    fn pause_far(&self, is_paused: bool) {
        self.faults(Faults {
            holds: is_paused,
            ..Faults::default()
        });
    }

    fn cut_way(&self, is_cut: bool) {
        if let Some(proxy) = &self.proxy {
            let faults = Faults {
                vanishes: is_cut,
                ..Faults::default()
            };
            proxy.faults(Way::Back, faults);
            if !is_cut {
                // The next frame would begin in the middle of a vanished frame.
                proxy.cut();
            }
        }
    }

    fn throttle(&self, bytes: u64) {
        self.faults(Faults {
            rate: Some(bytes),
            ..Faults::default()
        });
    }

    fn entries(&self) -> Option<[usize; 2]> {
        let [near, far] = ["near", "far"].map(|name| NodeName::new(name).unwrap());
        let [at_near, at_far] = [&self.near.cluster, &self.far.cluster];
        Some([at_near.open_entries(far), at_far.open_entries(near)])
    }

    /// Restarts the far node as after a kill: without a farewell, and at the same port.
    fn restart_far(&mut self) -> bool {
        let address = self.far.engine.local_addr().unwrap().to_string();
        self.far.engine.stop(Duration::ZERO);
        self.far = Node::start(
            "far",
            Direct::listen(address),
            Self::keys(&self.keys),
            (IS_GUEST, DEAD),
        );
        until("the nodes are connected", || {
            let up = self.near.cluster.nodes();
            up.iter()
                .any(|(_, it)| *it == self.far.cluster.incarnation())
        });
        true
    }
}
