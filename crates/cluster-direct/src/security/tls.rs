//! TLS 1.3 with certificates at both sides, each by the cluster's authority and for the name of its
//! node.
//!
//! A dialer does not always know the name of the node at an address: it checks that the
//! certificate is from the authority. The handshake above checks that the certificate is for the
//! name that the peer says.

use crate::error::DirectError;
use crate::refusal::Reason;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Connection,
    DigitallySignedStruct, Error, RootCertStore, ServerConfig, ServerConnection, SignatureScheme,
};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The settings of both sides.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    dialer: Arc<ClientConfig>,
    acceptor: Arc<ServerConfig>,
    authority: Arc<ByAuthority>,
}

impl Tls {
    /// Reads `ca.pem`, `node.pem` and `node.key`, and checks that other nodes will accept them.
    pub(crate) fn read(folder: &Path, name: &str) -> Result<Self, DirectError> {
        let [ca, node, key] = ["ca.pem", "node.pem", "node.key"].map(|file| folder.join(file));
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        for root in certificates(&ca)? {
            roots.add(root).map_err(|error| of_file(&ca, error))?;
        }
        if is_public(&key) {
            return Err(DirectError::KeyIsPublic(key));
        }
        let chain = certificates(&node)?;
        check_own(&node, &chain, &roots, name, &provider)?;
        let secret = PrivateKeyDer::from_pem_file(&key).map_err(|error| of_file(&key, error))?;
        let with_key = |error| of_file(&key, error);
        let roots = Arc::new(roots);
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let verifier = verifier.build().map_err(|error| of_file(&ca, error))?;
        let versions = [&rustls::version::TLS13];
        let mut acceptor = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(with_key)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), secret.clone_key())
            .map_err(with_key)?;
        // Each connection shows its certificate.
        acceptor.session_storage = Arc::new(NoServerSessionStorage {});
        acceptor.send_tls13_tickets = 0;
        let authority = Arc::new(ByAuthority {
            roots,
            provider: Arc::clone(&provider),
        });
        let mut dialer = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(with_key)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&authority) as _)
            .with_client_auth_cert(chain, secret)
            .map_err(with_key)?;
        dialer.enable_sni = false;
        dialer.resumption = Resumption::disabled();
        let (dialer, acceptor) = (Arc::new(dialer), Arc::new(acceptor));
        Ok(Self {
            dialer,
            acceptor,
            authority,
        })
    }

    /// Creates the dialer's side of a connection.
    pub(crate) fn dial(&self) -> Result<Connection, Error> {
        // Not sent, and not checked: see `ByAuthority`.
        let name = ServerName::try_from("node").map_err(|_| Error::General("a name".into()))?;
        ClientConnection::new(Arc::clone(&self.dialer), name).map(Connection::Client)
    }

    /// Creates the acceptor's side of a connection.
    pub(crate) fn accept(&self) -> Result<Connection, Error> {
        ServerConnection::new(Arc::clone(&self.acceptor)).map(Connection::Server)
    }

    /// Returns whether the peer's certificate, valid at the handshake, has expired since. Some 100
    /// us of work.
    pub(crate) fn has_expired(&self, connection: &Connection) -> bool {
        let Some([first, others @ ..]) = connection.peer_certificates() else {
            return false;
        };
        let verified = self.authority.verify(first, others, UnixTime::now());
        verified.is_err_and(|error| reason(&error) == Reason::Expired)
    }
}

/// Returns whether other users may read the secret key, or its group may write it. A group may read
/// it: so are secrets of containers.
#[cfg(unix)]
fn is_public(key: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(key).is_ok_and(|it| it.permissions().mode() & 0o037 != 0)
}

#[cfg(not(unix))]
fn is_public(_: &Path) -> bool {
    false
}

fn of_file(path: &Path, error: impl std::fmt::Display) -> DirectError {
    DirectError::KeyFile {
        path: path.to_owned(),
        error: error.to_string(),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, DirectError> {
    let all = CertificateDer::pem_file_iter(path).map_err(|error| of_file(path, error))?;
    let all: Vec<_> = all
        .collect::<Result<_, _>>()
        .map_err(|error| of_file(path, error))?;
    if all.is_empty() {
        return Err(of_file(path, "no certificate in it"));
    }
    Ok(all)
}

/// Checks the node's own certificate as a peer will.
fn check_own(
    path: &Path,
    chain: &[CertificateDer<'_>],
    roots: &RootCertStore,
    name: &str,
    provider: &CryptoProvider,
) -> Result<(), DirectError> {
    let own = |why| DirectError::OwnCertificate {
        path: path.to_owned(),
        why,
    };
    let parsed = chain.first().map(ParsedCertificate::try_from);
    let Some(Ok(parsed)) = parsed else {
        return Err(own("it is malformed"));
    };
    let algorithms = provider.signature_verification_algorithms.all;
    let now = UnixTime::now();
    verify_server_cert_signed_by_trust_anchor(&parsed, roots, &chain[1..], now, algorithms)
        .map_err(|error| match reason(&error) {
            Reason::Authority => own("it is not from the authority in ca.pem"),
            Reason::Expired => own("it has expired, or is not valid yet by this machine's clock"),
            _ => own("it can't be used for a node: issue another by `cargo xtask cluster-keys`"),
        })?;
    if is_for(&chain[0], name) {
        return Ok(());
    }
    Err(DirectError::OtherName {
        path: path.to_owned(),
        name: name.to_owned(),
    })
}

/// Returns whether the certificate is for this node. Names with capital letters are refused.
fn is_for(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let text = name;
    let (Ok(parsed), Ok(name)) = (
        ParsedCertificate::try_from(certificate),
        ServerName::try_from(text),
    ) else {
        return false;
    };
    is_canonical(&name, text) && verify_server_name(&parsed, &name).is_ok()
}

/// Returns whether no other text means the same to a certificate. The case of letters and a dot at
/// the end do not count there, and both make another name of a node.
fn is_canonical(name: &ServerName<'_>, text: &str) -> bool {
    match name {
        ServerName::IpAddress(ip) => std::net::IpAddr::from(*ip).to_string() == text,
        _ => !text.ends_with('.') && !text.contains(|it: char| it.is_ascii_uppercase()),
    }
}

/// Returns whether the peer's certificate is for the name that the peer says.
pub(crate) fn peer_is(connection: &Connection, name: &str) -> bool {
    let chain = connection.peer_certificates().unwrap_or_default();
    chain.first().is_some_and(|it| is_for(it, name))
}

/// Returns the reason for a failed handshake.
pub(crate) fn reason(error: &Error) -> Reason {
    match error {
        Error::InvalidCertificate(error) => match error {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Reason::Expired,
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Reason::Authority,
            _ => Reason::Certificate,
        },
        Error::NoCertificatesPresented => Reason::Certificate,
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateExpired => Reason::Expired,
            AlertDescription::UnknownCA | AlertDescription::DecryptError => Reason::Authority,
            AlertDescription::BadCertificate
            | AlertDescription::CertificateRequired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnsupportedCertificate => Reason::Certificate,
            _ => Reason::Malformed,
        },
        _ => Reason::Malformed,
    }
}

/// Accepts any certificate of the authority.
#[derive(Debug)]
struct ByAuthority {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ByAuthority {
    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, others, now, algorithms)
    }
}

impl ServerCertVerifier for ByAuthority {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(end_entity, intermediates, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
