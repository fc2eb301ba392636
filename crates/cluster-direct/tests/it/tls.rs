//! Nodes with certificates.

use crate::issue::{AUTHORITY_KEY, issue};
use crate::support::{Node, Told, engine, frames, pair};
use bytes::Bytes;
use ganger_cluster::MAX_FRAME;
use ganger_cluster_direct::{Direct, Reason};
use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// Issues keys of a fresh authority.
fn keys(names: &[&str]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    issue(root.path(), names, [2020, 2100]).unwrap();
    root
}

fn secure(root: &TempDir, name: &str) -> Direct {
    Direct::listen("127.0.0.1:0").keys(root.path().join(name))
}

// pins: H1
#[test]
fn frames_arrive_over_tls() {
    let root = keys(&["alpha", "beta"]);
    let (alpha, beta) = pair(secure(&root, "alpha"), secure(&root, "beta"));
    let frame = Bytes::from(vec![7; MAX_FRAME]);
    for (from, to) in [(&alpha, &beta), (&beta, &alpha)] {
        for _ in 0..100 {
            while !from.send(to, frame.clone()) {
                let writable = Told::Writable(to.name.clone());
                from.inbox
                    .until("room", |told| told.contains(&writable))
                    .retain(|it| *it != writable);
            }
        }
        let told = to
            .inbox
            .until("all frames", |told| frames(told).len() == 100);
        assert!(frames(&told).iter().all(|it| *it == frame));
    }
}

// pins: H5
#[test]
fn a_stop_over_tls_sends_what_was_taken() {
    let root = keys(&["alpha", "beta"]);
    let roomy = secure(&root, "alpha").outbox(64 << 20);
    let (alpha, beta) = pair(roomy, secure(&root, "beta"));
    for _ in 0..100 {
        assert!(alpha.send(&beta, vec![7; MAX_FRAME]));
    }
    alpha.stop();
    let vanished = Told::Vanished(alpha.name.clone());
    let told = beta.inbox.until("the end", |told| told.contains(&vanished));
    assert_eq!(frames(&told).len(), 100);
}

/// Issues certificates later, with the kept key of the authority: they are of the same authority.
// pins: H2
#[test]
fn nodes_may_be_added_later() {
    let root = keys(&["alpha"]);
    issue(root.path(), &["beta"], [2020, 2100]).unwrap();
    pair(secure(&root, "alpha"), secure(&root, "beta"));
}

// pins: H3
// case: 33
#[test]
fn another_authority_is_refused() {
    let (ours, others) = (keys(&["alpha"]), keys(&["beta"]));
    let alpha = Node::start("alpha", secure(&ours, "alpha"));
    let beta = Node::start("beta", secure(&others, "beta").seeds(alpha.seed()));
    let refused = beta.until_refused(Reason::Authority, false);
    assert!(refused.to_string().contains("ca.pem"), "{refused}");
    let refused = alpha.until_refused(Reason::Authority, true);
    assert!(
        refused.to_string().contains("this node's certificate"),
        "{refused}"
    );
    assert!(alpha.engine.connected().is_empty());
}

/// Refuses a name that is not in the certificate: the key of beta does not speak for gamma.
// pins: H2
#[test]
fn a_certificate_is_for_its_name_alone() {
    let root = keys(&["alpha", "beta"]);
    let alpha = Node::start("alpha", secure(&root, "alpha"));
    let mut stranger = Dialer::connect(&alpha, &root.path().join("beta"));
    stranger
        .write(&crate::hostile::greeting("gamma", 1))
        .unwrap();
    let refusal = stranger.packet().unwrap();
    assert_eq!((refusal[5], refusal[8]), (2, 6), "{refusal:?}");
    let refused = alpha.until_refused(Reason::CertificateName, false);
    assert_eq!(refused.name.unwrap().as_str(), "gamma");
}

/// Refuses a dialer whose certificate has expired.
// pins: H3
// case: 33
#[test]
fn an_expired_certificate_is_refused() {
    let root = keys(&["alpha"]);
    issue(root.path(), &["beta"], [2001, 2002]).unwrap();
    let alpha = Node::start("alpha", secure(&root, "alpha"));
    let mut stranger = Dialer::connect(&alpha, &root.path().join("beta"));
    let error = stranger.write(&crate::hostile::greeting("beta", 1));
    let error = error.and_then(|()| stranger.packet()).unwrap_err();
    assert!(error.to_string().contains("CertificateExpired"), "{error}");
    let refused = alpha.until_refused(Reason::Expired, false);
    assert!(refused.to_string().contains("expired"), "{refused}");
}

// pins: H3
// case: 33
#[test]
fn a_node_without_a_certificate_is_refused() {
    let root = keys(&["alpha"]);
    let alpha = Node::start("alpha", secure(&root, "alpha"));
    let mut stranger = Dialer::connect_with(&alpha, root.path().join("alpha").as_path(), false);
    let error = stranger.write(&crate::hostile::greeting("beta", 1));
    let error = error.and_then(|()| stranger.packet()).unwrap_err();
    assert!(error.to_string().contains("CertificateRequired"), "{error}");
    alpha.until_refused(Reason::Certificate, false);
}

/// Refuses a connection if a single side has keys, either side.
// pins: H3
#[test]
fn one_side_without_tls_is_refused() {
    let root = keys(&["alpha", "beta"]);
    let secured = Node::start("alpha", secure(&root, "alpha"));
    let clear = Node::start("beta", engine().seeds(secured.seed()));
    secured.until_refused(Reason::Tls, false);
    clear.until_refused(Reason::Tls, true);
    let clear = Node::start("alpha", engine());
    let secured = Node::start("beta", secure(&root, "beta").seeds(clear.seed()));
    secured.until_refused(Reason::Tls, false);
    clear.until_refused(Reason::Tls, false);
}

/// Refuses peers with keys and different cookies. With keys the cookie may be left out.
// pins: H3
// case: 33
#[test]
fn a_cookie_counts_over_tls_too() {
    let root = keys(&["alpha", "beta"]);
    let alpha = Node::start("alpha", secure(&root, "alpha").cookie("one"));
    let beta = secure(&root, "beta").cookie("two").seeds(alpha.seed());
    let beta = Node::start("beta", beta);
    alpha.until_refused(Reason::Cookie, false);
    beta.until_refused(Reason::Cookie, true);
}

/// A dialer of the TLS library alone.
struct Dialer {
    tls: rustls::StreamOwned<ClientConnection, TcpStream>,
}

impl Dialer {
    fn connect(node: &Node, folder: &Path) -> Self {
        Self::connect_with(node, folder, true)
    }

    fn connect_with(node: &Node, folder: &Path, has_certificate: bool) -> Self {
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_file(folder.join("ca.pem")).unwrap();
        roots.add(ca).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = if has_certificate {
            let own = CertificateDer::from_pem_file(folder.join("node.pem")).unwrap();
            let key = PrivateKeyDer::from_pem_file(folder.join("node.key")).unwrap();
            config.with_client_auth_cert(vec![own], key).unwrap()
        } else {
            config.with_no_client_auth()
        };
        let name = ServerName::try_from(node.name.as_str().to_owned()).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(node.address()).unwrap();
        stream
            .set_read_timeout(Some(crate::support::PATIENCE))
            .unwrap();
        let tls = rustls::StreamOwned::new(connection, stream);
        Self { tls }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tls.write_all(bytes)?;
        self.tls.flush()
    }

    fn packet(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 8];
        self.tls.read_exact(&mut head)?;
        let mut packet = head.to_vec();
        packet.resize(8 + usize::from(u16::from_le_bytes([head[6], head[7]])), 0);
        self.tls.read_exact(&mut packet[8..])?;
        Ok(packet)
    }
}

/// Writes a certificate of the authority in `root` that is valid for this time from now on.
fn renew(root: &Path, name: &str, time: Duration) {
    let authority_key = fs::read_to_string(root.join(AUTHORITY_KEY)).unwrap();
    let mut authority = CertificateParams::default();
    authority.distinguished_name = DistinguishedName::new();
    let called = "authority of a ganger cluster";
    authority
        .distinguished_name
        .push(DnType::CommonName, called);
    let issuer = Issuer::new(authority, KeyPair::from_pem(&authority_key).unwrap());
    let key = fs::read_to_string(root.join(name).join("node.key")).unwrap();
    let key = KeyPair::from_pem(&key).unwrap();
    let mut node = CertificateParams::new([name.to_owned()]).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    node.not_before = date_time_ymd(2020, 1, 1);
    node.not_after = date_time_ymd(1970, 1, 1) + now + time;
    let node = node.signed_by(&key, &issuer).unwrap().pem();
    fs::write(root.join(name).join("node.pem"), node).unwrap();
}

/// Ends a connection with the certificate that has proved its peer; the other connection goes on.
// pins: H2
#[test]
fn a_connection_ends_with_its_certificate() {
    let root = keys(&["alpha", "beta", "gamma"]);
    let alpha = Node::start("alpha", secure(&root, "alpha"));
    let gamma = Node::start("gamma", secure(&root, "gamma").seeds(alpha.seed()));
    gamma.until_connected(&alpha);
    // The machine may take this long to connect the two.
    let mut time = Duration::from_secs(5);
    let beta = loop {
        renew(root.path(), "beta", time);
        let end = Instant::now() + time;
        let beta = Node::start("beta", secure(&root, "beta").seeds(alpha.seed()));
        while beta.engine.connected().is_empty() && Instant::now() < end {
            thread::yield_now();
        }
        if !beta.engine.connected().is_empty() {
            break beta;
        }
        time *= 2;
    };
    beta.until_connected(&alpha);
    let refused = alpha.until_refused(Reason::Expired, false);
    assert_eq!(refused.name, Some(beta.name.clone()));
    let vanished = Told::Vanished(beta.name.clone());
    drop(
        alpha
            .inbox
            .until("the end", |told| told.contains(&vanished)),
    );
    assert_eq!(
        alpha
            .inbox
            .count(|it| *it == Told::Vanished(gamma.name.clone())),
        0
    );
    assert!(alpha.engine.connected().contains(&gamma.name));
}
