//! The cases of all engines, between two nodes over a broker.

use crate::support::broker::Broker;
use ganger_chaos::{Faults, Proxy, Way};
use ganger_cluster::conformance::{self, Harness, PATIENCE, Threads, scheduler};
use ganger_cluster::{Cluster, Engine as _, Settings};
use ganger_cluster_nats::Nats;
use ganger_proc_api::NodeName;
use ganger_sched::{Handle, Scheduler};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

ganger_cluster::cases!(Over);

/// A session without a connection ends after this time. A restart of the broker is shorter, on a
/// busy machine too.
const DEAD: Duration = Duration::from_secs(8);

/// The restarts of the broker during the messages of a case.
const RESTARTS: usize = 3;

/// A scheduler as a node of the cluster.
struct Node {
    /// Leaves before its scheduler ends.
    cluster: Cluster,
    scheduler: Scheduler,
    engine: Arc<Nats>,
}

impl Node {
    fn join(url: &str, name: &str, dead: Duration) -> Self {
        let scheduler = scheduler(name).start().unwrap();
        // The engine gives no hint of a pause shorter than `dead`.
        let engine = Arc::new(Nats::new(url).beacon(dead / 3));
        let mut settings = Settings::default();
        settings.dead = dead;
        let cluster = Cluster::builder()
            .cookie("secret")
            .engine(engine.clone())
            .settings(settings)
            .types(conformance::types)
            .kind(conformance::CHILD, conformance::child)
            .join(&scheduler)
            .unwrap();
        Self {
            cluster,
            scheduler,
            engine,
        }
    }
}

/// Two nodes and their broker. Without a broker, a scheduler in both roles.
enum Over {
    Broker {
        nodes: [Node; 2],
        broker: Arc<Mutex<Broker>>,
        restarts: Mutex<Option<JoinHandle<()>>>,
        /// In front of the broker, one for each node, if the pair is frail.
        proxies: Option<Box<[Proxy; 2]>>,
    },
    Nothing(Scheduler),
}

impl Over {
    fn node(&self, number: usize) -> &Scheduler {
        match self {
            Self::Broker { nodes, .. } => &nodes[number].scheduler,
            Self::Nothing(scheduler) => scheduler,
        }
    }

    fn ready(nodes: [Node; 2], broker: Broker, proxies: Option<Box<[Proxy; 2]>>) -> Self {
        Self::connected(&nodes);
        Self::Broker {
            nodes,
            broker: Arc::new(Mutex::new(broker)),
            restarts: Mutex::new(None),
            proxies,
        }
    }

    /// Sets faults of the frames from the node, and of the frames for the node.
    fn faults(&self, node: usize, ways: &[Way], faults: Faults) {
        if let Self::Broker {
            proxies: Some(proxies),
            ..
        } = self
        {
            for way in ways {
                proxies[node].faults(*way, faults);
            }
        }
    }

    /// Waits until the near node knows the present far node, and the far node the near one.
    fn connected(nodes: &[Node; 2]) {
        let end = Instant::now() + PATIENCE;
        let [near, far] = nodes.each_ref().map(|node| &node.cluster);
        let knows = |a: &Cluster, b: &Cluster| {
            let known = a.nodes();
            known.iter().any(|(_, run)| *run == b.incarnation())
        };
        while !(knows(near, far) && knows(far, near)) {
            assert!(Instant::now() < end, "the nodes are not connected");
            // A change of the nodes wakes no thread.
            thread::park_timeout(Duration::from_millis(2));
        }
    }
}

impl Harness for Over {
    type Ground = Threads;

    fn start(_: Threads) -> Self {
        let Some(broker) = Broker::start() else {
            return Self::Nothing(scheduler("one").start().unwrap());
        };
        let nodes = ["near", "far"].map(|name| Node::join(&broker.url(), name, DEAD));
        Self::ready(nodes, broker, None)
    }

    fn start_frail(_: Threads, dead: Duration) -> Option<Self> {
        let broker = Broker::start()?;
        let address = SocketAddr::from(([127, 0, 0, 1], broker.port));
        let both = ["near", "far"].map(|name| {
            let proxy = Proxy::to(address);
            let url = format!("nats://{}", proxy.address());
            (Node::join(&url, name, dead), proxy)
        });
        let [(near, at_near), (far, at_far)] = both;
        Some(Self::ready(
            [near, far],
            broker,
            Some(Box::new([at_near, at_far])),
        ))
    }

    fn ground(&self) -> Threads {
        Threads
    }

    fn schedulers(&self) -> [&Handle; 2] {
        [self.node(0), self.node(1)]
    }

    fn is_one(&self) -> bool {
        matches!(self, Self::Nothing(_))
    }

    fn clusters(&self) -> Option<[&Cluster; 2]> {
        match self {
            Self::Broker { nodes, .. } => Some(nodes.each_ref().map(|node| &node.cluster)),
            Self::Nothing(_) => None,
        }
    }

    /// Ends the broker and starts it again, again and again.
    fn disturb(&self) -> bool {
        let Self::Broker {
            broker, restarts, ..
        } = self
        else {
            return false;
        };
        let broker = broker.clone();
        let thread = thread::spawn(move || {
            for _ in 0..RESTARTS {
                let mut broker = broker.lock().unwrap();
                broker.kill();
                broker.restart();
            }
        });
        *restarts.lock().unwrap() = Some(thread);
        true
    }

    /// Ends the broker for good.
    fn cut(&self) -> bool {
        if let Self::Broker { broker, .. } = self {
            broker.lock().unwrap().kill();
        }
        !self.is_one()
    }

    fn pause_far(&self, is_paused: bool) {
        let faults = Faults {
            holds: is_paused,
            ..Faults::default()
        };
        self.faults(1, &Way::BOTH, faults);
    }

    fn cut_way(&self, is_cut: bool) {
        let faults = Faults {
            vanishes: is_cut,
            ..Faults::default()
        };
        self.faults(0, &[Way::There], faults);
        if let Self::Broker {
            proxies: Some(proxies),
            ..
        } = self
            && !is_cut
        {
            // The next message would begin in the middle of a lost message.
            proxies[0].cut();
        }
    }

    fn throttle(&self, bytes: u64) {
        let faults = Faults {
            rate: Some(bytes),
            ..Faults::default()
        };
        for node in 0..2 {
            self.faults(node, &Way::BOTH, faults);
        }
    }

    fn entries(&self) -> Option<[usize; 2]> {
        let Self::Broker { nodes, .. } = self else {
            return None;
        };
        let [near, far] = ["near", "far"].map(|name| NodeName::new(name).unwrap());
        let [at_near, at_far] = nodes.each_ref().map(|node| &node.cluster);
        Some([at_near.open_entries(far), at_far.open_entries(near)])
    }

    /// Ends the engine of the first far node without a word of its sessions.
    fn restart_far(&mut self) -> bool {
        let Self::Broker { nodes, broker, .. } = self else {
            return false;
        };
        nodes[1].engine.stop(Duration::ZERO);
        let url = broker.lock().unwrap().url();
        nodes[1] = Node::join(&url, "far", DEAD);
        Self::connected(nodes);
        true
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        if let Self::Broker { restarts, .. } = self
            && let Some(thread) = restarts.get_mut().unwrap().take()
        {
            thread.join().unwrap();
        }
    }
}
