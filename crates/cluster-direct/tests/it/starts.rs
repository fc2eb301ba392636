//! Errors of a start say what to do.

use crate::issue::issue;
use crate::support::{COOKIE, Inbox, Node, engine, name};
use ganger_cluster::Engine;
use ganger_cluster_direct::Direct;
use std::fs;
use std::sync::Arc;

/// Returns the error of a start of `alpha`.
fn error(engine: &Direct) -> String {
    let error = engine.start(&name("alpha"), Arc::new(Inbox::default()));
    error.unwrap_err().to_string()
}

// pins: H3
#[test]
fn an_open_address_needs_keys_or_a_word() {
    let open = Direct::listen("0.0.0.0:0").cookie(COOKIE);
    let text = error(&open);
    assert!(
        text.contains("keys(dir)") && text.contains("insecure()"),
        "{text}"
    );
    let alpha = Node::start("alpha", open.insecure());
    let seed = format!("127.0.0.1:{}", alpha.address().port());
    let beta = Node::start("beta", engine().seeds([seed]));
    beta.until_connected(&alpha);
    // Beta tells alpha's place to gamma: the host is where beta sees alpha.
    let gamma = Node::start("gamma", engine().seeds(beta.seed()));
    gamma.until_connected(&alpha);
}

// pins: H3
#[test]
fn settings_that_can_not_work_are_errors() {
    let text = error(&Direct::listen("nowhere").cookie(COOKIE));
    assert!(
        text.contains("nowhere") && text.contains("10.0.0.1:7447"),
        "{text}"
    );
    let alpha = Node::start("alpha", engine());
    let text = error(&Direct::listen(alpha.address().to_string()).cookie(COOKIE));
    assert!(text.contains(&alpha.address().to_string()), "{text}");
    let text = error(&engine().cookie(""));
    assert!(text.contains("empty"), "{text}");
    let text = error(&engine().cluster("c".repeat(256)));
    assert!(text.contains("cluster"), "{text}");
}

// pins: H3
#[test]
fn keys_are_checked_at_the_start() {
    let root = tempfile::tempdir().unwrap();
    issue(root.path(), &["alpha", "beta"], [2020, 2100]).unwrap();
    let folder = root.path().join("alpha");
    let with = |folder: &std::path::Path| error(&engine().keys(folder));
    let text = with(&root.path().join("beta"));
    assert!(text.contains("not for the node's name \"alpha\""), "{text}");
    let text = with(&root.path().join("gamma"));
    assert!(text.contains("ca.pem"), "{text}");
    // The certificate of another authority.
    let other = tempfile::tempdir().unwrap();
    issue(other.path(), &["alpha"], [2020, 2100]).unwrap();
    fs::copy(other.path().join("alpha/ca.pem"), folder.join("ca.pem")).unwrap();
    let text = with(&folder);
    assert!(text.contains("not from the authority"), "{text}");
    // Expired, and not valid yet.
    for years in [[2001, 2002], [2150, 2151]] {
        issue(root.path(), &["alpha"], years).unwrap();
        let text = with(&folder);
        assert!(text.contains("expired, or is not valid yet"), "{text}");
    }
    // Another key, no key, and no certificate.
    issue(root.path(), &["alpha"], [2020, 2100]).unwrap();
    fs::copy(other.path().join("alpha/node.key"), folder.join("node.key")).unwrap();
    let text = with(&folder);
    assert!(text.contains("node.key"), "{text}");
    fs::write(folder.join("node.key"), "no key").unwrap();
    let text = with(&folder);
    assert!(text.contains("node.key"), "{text}");
    fs::write(folder.join("node.pem"), "").unwrap();
    let text = with(&folder);
    assert!(
        text.contains("node.pem") && text.contains("no certificate"),
        "{text}"
    );
}

/// Refuses a key that other users may read, as no secret. A group may read the key, as in
/// containers.
// pins: H3
#[cfg(unix)]
#[test]
fn a_public_key_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    issue(root.path(), &["alpha"], [2020, 2100]).unwrap();
    let folder = root.path().join("alpha");
    let key = folder.join("node.key");
    for mode in [0o644, 0o660, 0o601] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        let text = error(&engine().keys(&folder));
        assert!(
            text.contains("node.key") && text.contains("chmod 600"),
            "{text}"
        );
    }
    for mode in [0o640, 0o400] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        drop(Node::start("alpha", engine().keys(&folder)));
    }
}

/// Makes the file by the first node: its text is the secret of both.
// pins: H2
#[test]
fn nodes_share_the_cookie_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cookie");
    let direct = || Direct::listen("127.0.0.1:0").cookie_file(&path);
    let alpha = Node::start("alpha", direct());
    let beta = Node::start("beta", direct().seeds(alpha.seed()));
    beta.until_connected(&alpha);
}
