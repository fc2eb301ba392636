//! Two nodes of one program, over a twin, with a store: a registrar at the first, or a twin's.

use super::stores::StoreHarness;
use super::strong::StrongHarness;
use super::{eventually, scheduler};
use crate::id::NodeId;
use crate::node::{Cluster, Registrar, StoreSource};
use crate::session::Settings;
use crate::store::{RunningStore, Store, StoreFaults, TwinStore};
use crate::twin::{Running, Twin};
use ganger_sched::Scheduler;
use ganger_sync::atomic::{AtomicU64, Ordering};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Unheard for this time, a node has gone.
const DEAD: Duration = Duration::from_secs(4);

fn node(
    twin: &Twin,
    name: &str,
    store: impl Into<StoreSource>,
    lease: Duration,
) -> (Scheduler, Cluster) {
    let scheduler = scheduler(name).start().expect("the scheduler starts");
    let settings = Settings {
        dead: DEAD,
        ..Settings::default()
    };
    let node = Cluster::builder()
        .cluster("conformance")
        .engine(twin.port())
        .settings(settings)
        .store(store)
        .lease(lease)
        .join(&scheduler);
    (scheduler, node.expect("the node joins"))
}

fn ids() -> [NodeId; 2] {
    ["near", "far"].map(|name| NodeId::new(name).expect("it is a name"))
}

/// Two nodes over a [`Twin`]; the first has a [`Registrar`] with a file.
pub struct Registrars {
    /// `None` while it is restarted.
    near: Option<(Scheduler, Cluster)>,
    far: (Scheduler, Cluster),
    twin: Twin,
    folder: PathBuf,
    lease: Duration,
    _running: Running,
}

impl Registrars {
    fn with_lease(lease: Duration) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        // Ordering: only the number counts.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("ganger-registrar-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("the folder is made");
        let twin = Twin::new(7);
        twin.hints(true);
        let _running = twin.run();
        let near = Registrar::file(folder.join("log"));
        let near = node(&twin, "near", near, lease);
        let far = node(&twin, "far", Registrar::at("near"), lease);
        Self {
            near: Some(near),
            far,
            twin,
            folder,
            lease,
            _running,
        }
    }

    fn near(&self) -> &(Scheduler, Cluster) {
        self.near.as_ref().expect("the node is there")
    }

    fn cut(&self, is_apart: bool) -> bool {
        let [near, far] = ids();
        let cut = if is_apart { Twin::cut } else { Twin::heal };
        cut(&self.twin, &near, &far);
        cut(&self.twin, &far, &near);
        true
    }
}

impl StoreHarness for Registrars {
    fn start() -> Self {
        Self::with_lease(Duration::from_secs(240))
    }

    fn store(&self, node: usize) -> Arc<dyn Store> {
        let (_, cluster) = [self.near(), &self.far][node];
        cluster.store().expect("the node has a store")
    }

    fn restart(&mut self) -> bool {
        // The program ends: the engine is gone, and the file is free again.
        self.twin.crash(&ids()[0]);
        let (scheduler, _) = self.near.take().expect("the node is there");
        drop(scheduler);
        let near = Registrar::file(self.folder.join("log"));
        self.near = Some(node(&self.twin, "near", near, self.lease));
        true
    }

    fn part(&self, is_apart: bool) -> bool {
        self.cut(is_apart)
    }
}

impl StrongHarness for Registrars {
    fn start(lease: Duration) -> Self {
        Self::with_lease(lease)
    }

    fn node(&self, node: usize) -> (&Scheduler, &Cluster) {
        let (scheduler, cluster) = [self.near(), &self.far][node];
        (scheduler, cluster)
    }

    fn part(&self, is_apart: bool) -> bool {
        self.cut(is_apart)
    }
}

impl Drop for Registrars {
    fn drop(&mut self) {
        let _removed = fs::remove_dir_all(&self.folder);
    }
}

/// Two nodes over a [`Twin`], with a [`TwinStore`].
pub struct TwinStrong {
    nodes: [(Scheduler, Cluster); 2],
    store: TwinStore,
    _running: (Running, RunningStore),
}

impl StrongHarness for TwinStrong {
    fn start(lease: Duration) -> Self {
        let (twin, store) = (Twin::new(7), TwinStore::new(7));
        let _running = (twin.run(), store.run());
        let nodes = ["near", "far"].map(|name| node(&twin, name, store.port(name), lease));
        eventually("the nodes know the store", || {
            nodes.iter().all(|(_, node)| {
                node.strong_names()
                    .is_ok_and(|names| names.whereis("nothing").is_ok())
            })
        });
        Self {
            nodes,
            store,
            _running,
        }
    }

    fn node(&self, node: usize) -> (&Scheduler, &Cluster) {
        let (scheduler, cluster) = &self.nodes[node];
        (scheduler, cluster)
    }

    fn part(&self, is_apart: bool) -> bool {
        let faults = StoreFaults {
            down: is_apart,
            ..StoreFaults::default()
        };
        self.store.faults_of("far", faults);
        true
    }
}
