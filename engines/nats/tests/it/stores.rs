//! The store in JetStream: the cases of all stores, with one server, and with three servers, killed
//! in turn.

use crate::support::broker::{Broker, listen, program};
use crate::support::proxy::Proxy;
use ganger_cluster::conformance::{PATIENCE, StoreHarness, StrongHarness, TwinStores, scheduler};
use ganger_cluster::{Cluster, Store, StoreAnswer, StoreChange, StoreError, StoreOp, StoreReply};
use ganger_cluster_nats::{Nats, NatsError};
use ganger_sched::Scheduler;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

mod alone {
    ganger_cluster::store_cases!(super::Alone);
}

mod names {
    // case: 37
    ganger_cluster::strong_cases!(super::Named);
}

mod three {
    ganger_cluster::store_cases!(super::Three);
}

/// Returns whether the cases with three servers, and with connections that are cut, run: minutes.
fn is_full() -> bool {
    std::env::var_os("GANGER_CASES").is_some_and(|cases| cases == "full")
}

fn open(url: &str) -> Arc<dyn Store> {
    let nats = Nats::new(url).connect_within(PATIENCE);
    nats.open_store().unwrap()
}

fn jetstream(folder: &TempDir, name: &str) -> String {
    let path = folder.path().join(name);
    format!("server_name: {name}\njetstream {{ store_dir: {path:?} }}\n")
}

/// One server. The second node's way to it can be cut. Without a broker, the twin.
enum Alone {
    Broker {
        stores: [Arc<dyn Store>; 2],
        proxy: Proxy,
        broker: Broker,
        _folder: TempDir,
    },
    Nothing(TwinStores),
}

impl StoreHarness for Alone {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let Some(broker) = Broker::with(&jetstream(&folder, "one")) else {
            return Self::Nothing(TwinStores::start());
        };
        let proxy = Proxy::to(broker.port);
        Self::Broker {
            stores: [open(&broker.url()), open(&proxy.url())],
            proxy,
            broker,
            _folder: folder,
        }
    }

    fn store(&self, node: usize) -> Arc<dyn Store> {
        match self {
            Self::Broker { stores, .. } => stores[node].clone(),
            Self::Nothing(twin) => twin.store(node),
        }
    }

    fn restart(&mut self) -> bool {
        match self {
            Self::Broker { broker, .. } => {
                broker.kill();
                broker.restart();
                true
            }
            Self::Nothing(twin) => twin.restart(),
        }
    }

    fn part(&self, is_apart: bool) -> bool {
        match self {
            Self::Broker { .. } if !is_full() => false,
            Self::Broker { proxy, .. } => {
                proxy.cut(is_apart);
                true
            }
            Self::Nothing(twin) => twin.part(is_apart),
        }
    }
}

/// Servers of a cluster, each with the routes to all.
fn servers(folder: &TempDir) -> Vec<Broker> {
    let free = || TcpListener::bind("127.0.0.1:0").unwrap();
    let ports = [free(), free(), free()].map(|it| it.local_addr().unwrap().port());
    let routes = ports.map(|port| format!("\"nats://127.0.0.1:{port}\""));
    let routes = routes.join(", ");
    let settings = ["one", "two", "three"].into_iter().zip(ports);
    let servers = settings.map(|(name, port)| {
        let jetstream = jetstream(folder, name);
        let cluster = format!(
            "cluster {{ name: test, {}, routes: [{routes}] }}",
            listen(port)
        );
        Broker::with(&format!("{jetstream}{cluster}")).unwrap()
    });
    servers.collect()
}

fn urls(servers: &[Broker]) -> String {
    let urls: Vec<_> = servers.iter().map(Broker::url).collect();
    urls.join(",")
}

/// Three servers. A restart kills each in turn, and so the leader.
enum Three {
    Brokers {
        stores: [Arc<dyn Store>; 2],
        servers: Vec<Broker>,
        _folder: TempDir,
    },
    Nothing(TwinStores),
}

impl StoreHarness for Three {
    fn start() -> Self {
        if program().is_none() || !is_full() {
            return Self::Nothing(TwinStores::start());
        }
        let folder = tempfile::tempdir().unwrap();
        let servers = servers(&folder);
        let urls = urls(&servers);
        Self::Brokers {
            stores: [open(&urls), open(&urls)],
            servers,
            _folder: folder,
        }
    }

    fn store(&self, node: usize) -> Arc<dyn Store> {
        match self {
            Self::Brokers { stores, .. } => stores[node].clone(),
            Self::Nothing(twin) => twin.store(node),
        }
    }

    fn restart(&mut self) -> bool {
        match self {
            Self::Brokers {
                stores, servers, ..
            } => {
                for server in servers {
                    server.kill();
                    // Two of three go on, and have the earlier writes.
                    let mark = format!("without {}", server.port);
                    insist(&stores[0], &mark);
                    server.restart();
                    insist(&stores[1], &mark);
                }
                true
            }
            Self::Nothing(twin) => twin.restart(),
        }
    }
}

fn ask(store: &Arc<dyn Store>, op: StoreOp) -> Result<StoreAnswer, StoreError> {
    let (tell, told) = channel();
    store.apply(op, StoreReply::new(move |answer| drop(tell.send(answer))));
    told.recv_timeout(PATIENCE).unwrap()
}

/// Writes until the store has the entry.
fn insist(store: &Arc<dyn Store>, key: &str) {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        match ask(store, StoreOp::create(key, "x")) {
            Ok(StoreAnswer::Written(_)) | Err(StoreError::Exists(_)) => return,
            Err(StoreError::Unavailable(_) | StoreError::Unknown) => {}
            other => panic!("{other:?}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("the store takes no entry");
}

/// Two nodes with strong names in the store of one server.
enum Named {
    Nodes {
        /// Leave before their schedulers end.
        clusters: [Cluster; 2],
        schedulers: [Scheduler; 2],
        proxy: Proxy,
        _broker: Broker,
        _folder: TempDir,
    },
    Nothing(ganger_cluster::conformance::TwinStrong),
}

impl StrongHarness for Named {
    fn start(lease: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let Some(broker) = Broker::with(&jetstream(&folder, "one")) else {
            return Self::Nothing(StrongHarness::start(lease));
        };
        let proxy = Proxy::to(broker.port);
        let schedulers = ["near", "far"].map(|name| scheduler(name).start().unwrap());
        let stores = [broker.url(), proxy.url()];
        let join = |node: usize| {
            Cluster::builder()
                .cookie("secret")
                .engine(Nats::new(broker.url()))
                .store(open(&stores[node]))
                .lease(lease)
                .join(&schedulers[node])
                .unwrap()
        };
        let clusters = [join(0), join(1)];
        let end = Instant::now() + PATIENCE;
        let knows = |node: &Cluster| {
            let names = node.strong_names();
            names.is_ok_and(|names| names.whereis("nothing").is_ok())
        };
        while !clusters.iter().all(knows) {
            assert!(Instant::now() < end, "the nodes do not know the store");
            thread::park_timeout(Duration::from_millis(2));
        }
        Self::Nodes {
            clusters,
            schedulers,
            proxy,
            _broker: broker,
            _folder: folder,
        }
    }

    fn node(&self, node: usize) -> (&Scheduler, &Cluster) {
        match self {
            Self::Nodes {
                clusters,
                schedulers,
                ..
            } => (&schedulers[node], &clusters[node]),
            Self::Nothing(twin) => twin.node(node),
        }
    }

    fn part(&self, is_apart: bool) -> bool {
        match self {
            Self::Nodes { proxy, .. } => {
                proxy.cut(is_apart);
                true
            }
            Self::Nothing(twin) => twin.part(is_apart),
        }
    }
}

#[test]
fn a_broker_without_jetstream_is_named() {
    let Some(broker) = Broker::start() else {
        return;
    };
    let nats = Nats::new(broker.url()).connect_within(Duration::from_millis(300));
    let Err(error) = nats.open_store() else {
        panic!("there is no JetStream");
    };
    assert!(matches!(error, NatsError::NoJetStream(_)), "{error:?}");
    assert!(error.to_string().contains("jetstream: enabled"), "{error}");
}

fn made(url: &str, config: async_nats::jetstream::stream::Config) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = async_nats::connect(url).await.unwrap();
        let context = async_nats::jetstream::new(client);
        let end = Instant::now() + PATIENCE;
        while let Err(error) = context.create_stream(config.clone()).await {
            assert!(Instant::now() < end, "{error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
}

/// Refuses a stream that would lose writes, with the names of its settings.
#[test]
fn settings_that_lose_writes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    if program().is_none() {
        return;
    }
    let servers = servers(&folder);
    let config = async_nats::jetstream::stream::Config {
        name: "KV_ganger_shop".to_owned(),
        subjects: vec!["$KV.ganger_shop.>".to_owned()],
        max_messages_per_subject: 64,
        max_age: Duration::from_secs(3600),
        storage: async_nats::jetstream::stream::StorageType::Memory,
        ..Default::default()
    };
    made(&servers[0].url(), config);
    let nats = Nats::new(urls(&servers)).cluster("shop");
    let Err(NatsError::Stream { stream, faults }) = nats.open_store() else {
        panic!("the stream is refused");
    };
    assert_eq!(stream, "KV_ganger_shop");
    for fault in ["num_replicas below 3", "storage not file", "max_age"] {
        assert!(faults.contains(fault), "{faults}");
    }
}

/// Moves an entry from one lease to another, and takes a key again behind its end.
#[test]
fn an_entry_moves_between_leases_beside_other_writers() {
    let harness = Alone::start();
    let [near, far] = [0, 1].map(|node| harness.store(node));
    let grant = |ttl| match ask(&near, StoreOp::Grant { ttl }) {
        Ok(StoreAnswer::Lease(lease)) => lease,
        other => panic!("{other:?}"),
    };
    let hour = Duration::from_secs(3600);
    let writer = thread::spawn(move || {
        for round in 0..200 {
            let made = ask(&far, StoreOp::create(format!("other {round}"), "x"));
            assert!(matches!(made, Ok(StoreAnswer::Written(_))), "{made:?}");
        }
    });
    let mut lease = grant(hour);
    let made = ask(&near, StoreOp::create("a", "x").with_lease(lease));
    let Ok(StoreAnswer::Written(mut revision)) = made else {
        panic!("{made:?}");
    };
    for _ in 0..20 {
        let next = grant(hour);
        let moved = ask(&near, StoreOp::update("a", "y", revision).with_lease(next));
        let Ok(StoreAnswer::Written(later)) = moved else {
            panic!("{moved:?}");
        };
        assert!(later > revision);
        revision = later;
        assert_eq!(
            ask(&near, StoreOp::Revoke { lease }),
            Ok(StoreAnswer::Revoked)
        );
        lease = next;
    }
    writer.join().unwrap();
    let (tell, told) = channel();
    let watch = near.watch("a", Box::new(move |change| drop(tell.send(change))));
    let first = told.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(&first, StoreChange::Snapshot { entries, .. } if entries.len() == 1));
    assert_eq!(
        ask(&near, StoreOp::Revoke { lease }),
        Ok(StoreAnswer::Revoked)
    );
    let gone = told.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(&gone, StoreChange::Gone { key, .. } if &**key == "a"));
    let again = ask(&near, StoreOp::create("a", "z"));
    assert!(matches!(again, Ok(StoreAnswer::Written(later)) if later > revision));
    drop(watch);
}

/// Creates a key behind its end by many writers: one succeeds.
#[test]
fn a_key_behind_its_end_has_one_next_entry() {
    let harness = Three::start();
    let near = harness.store(0);
    for _ in 0..100 {
        let writers = [0, 1, 0, 1].map(|node| {
            let store = harness.store(node);
            thread::spawn(move || ask(&store, StoreOp::create("a", "x")))
        });
        let answers = writers.map(|it| it.join().unwrap());
        let mut written = None;
        for answer in &answers {
            match answer {
                Ok(StoreAnswer::Written(revision)) => {
                    assert_eq!(written, None, "{answers:?}");
                    written = Some(*revision);
                }
                Err(StoreError::Exists(_)) => {}
                other => panic!("{other:?}"),
            }
        }
        let gone = ask(&near, StoreOp::delete("a", written.unwrap()));
        assert!(matches!(gone, Ok(StoreAnswer::Deleted(_))), "{gone:?}");
    }
}

/// Returns a store of a user with the right to publish to these subjects.
fn limited(publish: &str) -> Option<(Broker, Arc<dyn Store>, TempDir)> {
    let folder = tempfile::tempdir().unwrap();
    let user = format!(
        "authorization {{ users: [{{ user: alpha, password: secret, permissions: {{ \
         publish: [{publish}], subscribe: [\"_INBOX.>\"] }} }}] }}"
    );
    let broker = Broker::with(&format!("{}{user}", jetstream(&folder, "one")))?;
    let nats = Nats::new(broker.url()).user("alpha", "secret");
    let store = nats.connect_within(PATIENCE).open_store().unwrap();
    Some((broker, store, folder))
}

/// Writes an entry again and again: 4 MiB, more than the broker sends before it asks for a word.
/// Returns how often the store was not available.
fn write_much(store: &Arc<dyn Store>) -> usize {
    let value = || vec![7; 32 << 10];
    let mut failures = 0;
    let mut revision = match ask(store, StoreOp::create("key", value())) {
        Ok(StoreAnswer::Written(revision)) => revision,
        other => panic!("{other:?}"),
    };
    let end = Instant::now() + PATIENCE;
    for _ in 0..128 {
        loop {
            match ask(store, StoreOp::update("key", value(), revision)) {
                Ok(StoreAnswer::Written(next)) => break revision = next,
                Err(StoreError::Unavailable(why)) if Instant::now() > end => panic!("{why}"),
                Err(StoreError::Unavailable(_)) => failures += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    failures
}

/// Writes with the rights of the guide.
#[test]
fn a_store_works_with_the_rights_of_the_table() {
    let rights = "\"$JS.API.>\", \"$JS.FC.>\", \"$KV.ganger_ganger.>\"";
    let Some((_broker, store, _folder)) = limited(rights) else {
        return;
    };
    assert_eq!(write_much(&store), 0);
}

/// Lets a broker wait in vain for a word of the client: the broker sends no further message. The
/// mirror begins anew.
#[test]
fn a_mirror_that_hears_nothing_begins_anew() {
    let rights = "\"$JS.API.>\", \"$KV.ganger_ganger.>\"";
    let Some((_broker, store, _folder)) = limited(rights) else {
        return;
    };
    let (tell, told) = channel();
    let watch = store.watch("nothing", Box::new(move |change| drop(tell.send(change))));
    assert!(write_much(&store) > 0);
    drop(watch);
    let changes: Vec<_> = told.iter().collect();
    assert!(changes.contains(&StoreChange::Lost), "{changes:?}");
}
