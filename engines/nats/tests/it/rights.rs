//! Rights by subject, and certificates. The settings here are the guide's.

use crate::issue::issue;
use crate::support::broker::Broker;
use crate::support::node::{Node, name};
use crate::support::raw::Raw;
use bytes::Bytes;
use ganger_cluster::{Engine, EngineError, EngineSink, Lane, NodeId};
use ganger_cluster_nats::{Nats, NatsError};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Returns the rights of a node, for the broker's settings.
pub(crate) fn rights(node: &str) -> String {
    format!(
        "{{ publish: [\"g.ganger.*.{node}.*\", \"g.ganger.live.{node}\"], \
         subscribe: [\"g.ganger.{node}.*.*\", \"g.ganger.live.*\"] }}"
    )
}

fn users(nodes: &[&str]) -> String {
    let user = |node: &&str| {
        let rights = rights(node);
        format!("{{ user: {node}, password: secret, permissions: {rights} }}")
    };
    let users: Vec<_> = nodes.iter().map(user).collect();
    format!("authorization {{ users: [{}] }}", users.join(", "))
}

struct Deaf;

impl EngineSink for Deaf {
    fn frame(&self, _: &NodeId, _: Bytes) {}
}

fn refused(engine: &Nats) -> NatsError {
    match engine.start(&name("alpha"), Arc::new(Deaf)) {
        Err(EngineError::Other(error)) => *error.downcast::<NatsError>().unwrap(),
        other => panic!("{other:?}"),
    }
}

// case: 33
#[test]
fn a_node_can_neither_speak_for_another_nor_listen_for_it() {
    let Some(broker) = Broker::with(&users(&["alpha", "beta", "mallory"])) else {
        return;
    };
    let user = |user| Nats::new(broker.url()).user(user, "secret");
    let b = Node::start("beta", user("beta"));
    let a = Node::start("alpha", user("alpha"));
    // Mallory uses subjects of alpha.
    let mut raw = Raw::user(broker.port, "mallory", "secret");
    raw.frame("g.ganger.beta.alpha.data", b"forged");
    raw.publish("g.ganger.live.alpha", b"gb\x01\x01run-no-1");
    raw.subscribe("g.ganger.alpha.*.data");
    raw.subscribe("g.ganger.>");
    let refusals = raw.flush().join("");
    for what in [
        "Publish to \"g.ganger.beta.alpha.data\"",
        "Publish to \"g.ganger.live.alpha\"",
        "Subscription to \"g.ganger.alpha.*.data\"",
        "Subscription to \"g.ganger.>\"",
    ] {
        assert!(refusals.contains(what), "{what}: {refusals}");
    }
    // Alpha's own frame comes first. Alpha sends after the broker has seen mallory's.
    a.send(&b.me, Lane::Data, &Bytes::from_static(b"genuine"));
    assert_eq!(b.frame(), (a.me.clone(), Bytes::from_static(b"genuine")));
    b.send(&a.me, Lane::Control, &Bytes::from_static(b"answer"));
    assert_eq!(a.frame(), (b.me.clone(), Bytes::from_static(b"answer")));
    let heard = raw.flush().join("");
    assert!(!heard.contains("MSG"), "{heard}");
}

/// Starts a node with another name than its user.
#[test]
fn a_start_without_rights_names_them() {
    let Some(broker) = Broker::with(&users(&["mallory"])) else {
        return;
    };
    let (sender, notices) = mpsc::channel();
    let engine = Nats::new(broker.url())
        .user("mallory", "secret")
        .on_notice(move |notice| sender.send(notice.clone()).unwrap());
    let error = refused(&engine);
    assert!(matches!(error, NatsError::Silent(_)), "{error}");
    assert!(
        error.to_string().contains("publish g.ganger.*.alpha.*"),
        "{error}"
    );
    drop(engine);
    let told: Vec<_> = notices.iter().map(|it| it.to_string()).collect();
    let refusal = "Permissions Violation for Subscription to \"g.ganger.alpha.*.control\"";
    assert!(told.iter().any(|it| it.contains(refusal)), "{told:?}");
}

// case: 33
#[test]
fn a_wrong_password_is_an_error_of_the_start() {
    let Some(broker) = Broker::with(&users(&["alpha"])) else {
        return;
    };
    for engine in [
        Nats::new(broker.url()),
        Nats::new(broker.url()).user("alpha", "wrong"),
        Nats::new(broker.url()).token("secret"),
    ] {
        let error = refused(&engine);
        assert!(matches!(error, NatsError::Denied(_)), "{error}");
    }
    let error = refused(&Nats::new(broker.url()).credentials("missing.creds"));
    assert!(error.to_string().contains("missing.creds"), "{error}");
}

/// Folders as `cargo xtask cluster-keys` writes them, for a broker on the loopback and for nodes.
struct Keys(tempfile::TempDir);

impl Keys {
    fn new(nodes: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names = [&["127.0.0.1"], nodes].concat();
        issue(folder.path(), &names, [2000, 2200]).unwrap();
        Self(folder)
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn root(&self) -> PathBuf {
        self.folder("127.0.0.1").join("ca.pem")
    }

    fn broker(&self, further: &str) -> String {
        let folder = self.folder("127.0.0.1");
        let [ca, pem, key] = ["ca.pem", "node.pem", "node.key"].map(|file| folder.join(file));
        let (ca, pem, key) = (ca.display(), pem.display(), key.display());
        format!("tls {{ ca_file: \"{ca}\", cert_file: \"{pem}\", key_file: \"{key}\"\n{further} }}")
    }

    fn engine(&self, broker: &Broker, node: &str) -> Nats {
        Nats::new(broker.url()).keys(self.folder(node))
    }
}

#[test]
fn certificates_name_the_users() {
    let keys = Keys::new(&["alpha", "beta", "mallory"]);
    let user = |node: &str| format!("{{ user: {node}, permissions: {} }}", rights(node));
    let users = ["alpha", "beta"].map(user).join(", ");
    let settings = format!(
        "{}\nauthorization {{ users: [{users}] }}",
        keys.broker("verify_and_map: true")
    );
    let Some(broker) = Broker::with(&settings) else {
        return;
    };
    let [a, b] = ["alpha", "beta"].map(|me| Node::start(me, keys.engine(&broker, me)));
    a.send(&b.me, Lane::Control, &Bytes::from_static(b"frame"));
    assert_eq!(b.frame(), (a.me.clone(), Bytes::from_static(b"frame")));
    // A certificate of the authority, without a user of its name.
    let error = refused(&keys.engine(&broker, "mallory"));
    assert!(matches!(error, NatsError::Denied(_)), "{error}");
    // A certificate of another authority, a broker of another authority, no certificate.
    let others = Keys::new(&["alpha"]);
    let [pem, key] = ["node.pem", "node.key"].map(|file| others.folder("alpha").join(file));
    let quick = |engine: Nats| engine.connect_within(Duration::from_millis(300));
    for engine in [
        Nats::new(broker.url()).tls(keys.root(), pem, key),
        others.engine(&broker, "alpha"),
        Nats::new(broker.url()).tls_root(keys.root()),
        Nats::new(broker.url()),
    ] {
        let error = refused(&quick(engine));
        let text = error.to_string();
        assert!(
            matches!(error, NatsError::Unreachable { .. } | NatsError::Tls(_)),
            "{text}"
        );
    }
    let missing = Nats::new(broker.url()).tls_root("missing.pem");
    let error = refused(&missing);
    assert!(matches!(error, NatsError::Tls(_)), "{error}");
}

#[test]
fn the_brokers_certificate_alone_is_enough_where_the_broker_says_so() {
    let keys = Keys::new(&[]);
    let Some(broker) = Broker::with(&keys.broker("")) else {
        return;
    };
    let engine = || Nats::new(broker.url()).tls_root(keys.root());
    let [a, b] = ["alpha", "beta"].map(|me| Node::start(me, engine()));
    a.send(&b.me, Lane::Data, &Bytes::from_static(b"frame"));
    assert_eq!(b.frame().0, a.me);
}
