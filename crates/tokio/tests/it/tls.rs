//! The web server with TLS.

use crate::serve::{Spawns, connect, hello, serve_on};
use crate::support::{PATIENCE, ms, ok, result, start};
use bytes::Bytes;
use ganger_sched::ContextExt;
use ganger_task::Cx;
use http_body_util::{BodyExt, Empty};
use hyper::service::service_fn;
use hyper::{Request, Version};
use hyper_util::rt::TokioIo;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Instant;
use tokio_rustls::TlsConnector;

/// Creates the configurations of a server, and of the clients that trust it.
fn configs() -> (Arc<ServerConfig>, ClientConfig) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut trusted = RootCertStore::empty();
    trusted.add(cert.der().clone()).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let client = ClientConfig::builder().with_root_certificates(trusted);
    (Arc::new(server), client.with_no_client_auth())
}

fn name() -> ServerName<'static> {
    "localhost".try_into().unwrap()
}

/// Connects a client before its handshake.
fn client(config: &ClientConfig, address: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
    let connection = ClientConnection::new(Arc::new(config.clone()), name()).unwrap();
    StreamOwned::new(connection, connect(address))
}

/// Asks, and has the server close the connection.
fn ask(client: &mut StreamOwned<ClientConnection, TcpStream>) -> String {
    let request = b"GET / HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n";
    client.write_all(request).unwrap();
    let mut answer = String::new();
    // An end without a word of TLS is an error here.
    client.read_to_string(&mut answer).unwrap();
    answer
}

// pins: I11
#[test]
fn https_is_served() {
    let (scheduler, _) = start(2);
    let (server, trusting) = configs();
    let (_server, address) = serve_on(&scheduler, service_fn(hello), |it| it.tls(server));
    for protocols in [vec![], vec![b"http/1.1".to_vec()]] {
        let mut config = trusting.clone();
        config.alpn_protocols = protocols;
        let mut client = client(&config, address);
        assert!(ask(&mut client).ends_with("\r\n\r\nhello"));
    }
}

// pins: I11
#[test]
fn http_2_is_chosen_in_the_handshake() {
    let (scheduler, _) = start(2);
    let (server, mut config) = configs();
    let (_server, address) = serve_on(&scheduler, service_fn(hello), |it| it.tls(server));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let client = scheduler.spawn(async move |cx: Cx| {
        let stream = tokio::net::TcpStream::connect(address).await?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name(), stream);
        let stream = stream.await?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut requests, connection) =
            hyper::client::conn::http2::handshake(Spawns(cx.clone()), TokioIo::new(stream)).await?;
        cx.context().spawn(async move |_: Cx| {
            connection.await?;
            Ok(())
        })?;
        let request = Request::get("https://localhost/").body(Empty::<Bytes>::new())?;
        let answer = requests.send_request(request).await?;
        assert_eq!(answer.version(), Version::HTTP_2);
        assert_eq!(answer.into_body().collect().await?.to_bytes(), "hello");
        ok(())
    });
    result(client.unwrap());
}

/// Keeps the protocols that the server's configuration names.
// pins: I11
#[test]
fn protocols_of_the_configuration_stay() {
    let (scheduler, _) = start(2);
    let (mut server, mut config) = configs();
    Arc::make_mut(&mut server).alpn_protocols = vec![b"http/1.1".to_vec()];
    let (_server, address) = serve_on(&scheduler, service_fn(hello), |it| it.tls(server));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut client = client(&config, address);
    assert!(ask(&mut client).ends_with("\r\n\r\nhello"));
    assert_eq!(client.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
}

// pins: I11
#[test]
fn a_handshake_that_fails_ends_its_connection_alone() {
    let (scheduler, _) = start(2);
    let (secure, trusting) = configs();
    let with_tls = |it: ganger_tokio::Serve<_, _, _>| it.tls(secure).max_connections(2);
    let (server, address) = serve_on(&scheduler, service_fn(hello), with_tls);
    let mut other = client(&trusting, address);
    other.conn.complete_io(&mut other.sock).unwrap();
    for _ in 0..3 {
        // The other side speaks no TLS, and gets at most an alert.
        let mut clear = connect(address);
        clear.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut alert = Vec::new();
        let ended = clear.read_to_end(&mut alert);
        assert!(ended.is_ok() || alert.len() < 16, "{ended:?}");
        assert!(!alert.starts_with(b"HTTP"));
    }
    assert!(ask(&mut other).ends_with("hello"));
    assert!(!server.is_finished());
}

// pins: I11
#[test]
fn a_handshake_has_the_time_of_a_head_and_is_within_the_limit() {
    let (scheduler, _) = start(2);
    let (secure, trusting) = configs();
    let soon = Arc::clone(&secure);
    let soon = |it: ganger_tokio::Serve<_, _, _>| it.tls(soon).header_timeout(ms(50));
    let (_one, address) = serve_on(&scheduler, service_fn(hello), soon);
    let begin = Instant::now();
    let mut silent = connect(address);
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    assert!(begin.elapsed() >= ms(50));

    let one = |it: ganger_tokio::Serve<_, _, _>| it.tls(secure).max_connections(1);
    let (_other, address) = serve_on(&scheduler, service_fn(hello), one);
    let silent = connect(address);
    let mut next = client(&trusting, address);
    next.sock.set_read_timeout(Some(ms(50))).unwrap();
    let waits = next.conn.complete_io(&mut next.sock).unwrap_err().kind();
    assert!(matches!(waits, ErrorKind::WouldBlock | ErrorKind::TimedOut));
    drop(silent);
    next.sock.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(ask(&mut next).ends_with("hello"));
}

// pins: I11, I4
#[test]
fn a_client_that_never_shakes_hands_holds_up_no_stop() {
    let (scheduler, _) = start(2);
    let (secure, trusting) = configs();
    let patient = |it: ganger_tokio::Serve<_, _, _>| it.tls(secure).header_timeout(PATIENCE * 10);
    let (server, address) = serve_on(&scheduler, service_fn(hello), patient);
    let mut silent = connect(address);
    // The server has accepted the silent connection when it has answered a later client.
    assert!(ask(&mut client(&trusting, address)).ends_with("hello"));
    let report = scheduler.stop(PATIENCE).unwrap();
    assert_eq!((report.forced, report.stuck.len()), (0, 0), "{report:?}");
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    assert!(server.wait().is_done());
}
