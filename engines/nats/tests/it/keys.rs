//! Users by nkeys, and by credentials files with tokens of an operator.

use crate::rights::rights;
use crate::support::broker::Broker;
use crate::support::node::Node;
use bytes::Bytes;
use data_encoding::BASE64URL_NOPAD;
use ganger_cluster::Lane;
use ganger_cluster_nats::Nats;
use nkeys::KeyPair;

fn talk(a: &Node, b: &Node) {
    for (from, to) in [(a, b), (b, a)] {
        from.send(&to.me, Lane::Data, &Bytes::from_static(b"frame"));
        assert_eq!(to.frame(), (from.me.clone(), Bytes::from_static(b"frame")));
    }
}

#[test]
fn nkeys_name_the_users() {
    let nodes = ["alpha", "beta"];
    let keys = nodes.map(|_| KeyPair::new_user());
    let user = |(node, key): (&str, &KeyPair)| {
        let (key, rights) = (key.public_key(), rights(node));
        format!("{{ nkey: {key}, permissions: {rights} }}")
    };
    let users: Vec<_> = nodes.into_iter().zip(&keys).map(user).collect();
    let settings = format!("authorization {{ users: [{}] }}", users.join(", "));
    let Some(broker) = Broker::with(&settings) else {
        return;
    };
    let [a, b] = [0, 1].map(|number: usize| {
        let seed = keys[number].seed().unwrap();
        Node::start(nodes[number], Nats::new(broker.url()).nkey(seed))
    });
    talk(&a, &b);
}

/// Signs the words of `by` about `of`.
fn token(by: &KeyPair, of: &KeyPair, words: &str) -> String {
    let head = r#"{"typ":"JWT","alg":"ed25519-nkey"}"#;
    let (iss, sub) = (by.public_key(), of.public_key());
    let about = format!(r#""iss":"{iss}","sub":"{sub}","nats":{{{words},"version":2}}"#);
    let body = format!(r#"{{"jti":"T","iat":1700000000,"name":"N",{about}}}"#);
    let parts = [head, &body].map(|part| BASE64URL_NOPAD.encode(part.as_bytes()));
    let text = parts.join(".");
    let signature = by.sign(text.as_bytes()).unwrap();
    format!("{text}.{}", BASE64URL_NOPAD.encode(&signature))
}

#[test]
fn credentials_files_name_the_users_and_their_rights() {
    let [operator, account] = [KeyPair::new_operator(), KeyPair::new_account()];
    let unlimited = [
        "subs", "data", "payload", "imports", "exports", "conn", "leaf",
    ];
    let unlimited = unlimited.map(|what| format!(r#""{what}":-1"#)).join(",");
    let limits = format!(r#""limits":{{{unlimited},"wildcards":true}}"#);
    let of_account = token(
        &operator,
        &account,
        &format!(r#"{limits},"type":"account""#),
    );
    let settings = format!(
        "operator: {}\nresolver: MEMORY\nresolver_preload: {{ {}: {of_account} }}",
        token(&operator, &operator, r#""type":"operator""#),
        account.public_key(),
    );
    let Some(broker) = Broker::with(&settings) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["alpha", "beta"].map(|node| {
        let key = KeyPair::new_user();
        let allow =
            |subjects: [String; 2]| format!(r#"{{"allow":["{}"]}}"#, subjects.join("\",\""));
        let publish = allow([
            format!("g.ganger.*.{node}.*"),
            format!("g.ganger.live.{node}"),
        ]);
        let subscribe = allow([format!("g.ganger.{node}.*.*"), "g.ganger.live.*".to_owned()]);
        let words = format!(
            r#""pub":{publish},"sub":{subscribe},"subs":-1,"data":-1,"payload":-1,"type":"user""#
        );
        let token = token(&account, &key, &words);
        let seed = key.seed().unwrap();
        let file = folder.path().join(format!("{node}.creds"));
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        std::fs::write(&file, text).unwrap();
        Node::start(node, Nats::new(broker.url()).credentials(file))
    });
    talk(&a, &b);
}
