//! Why the engine can't start. Each text says what to do.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;

/// Why the engine can't start: the source of an [`EngineError`](ganger_cluster::EngineError).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DirectError {
    /// The listening address is not an address.
    #[error("can't listen at {address:?}: {error}; expected an address as `10.0.0.1:7447`")]
    Address {
        /// The text.
        address: String,
        /// The system's reason.
        error: io::Error,
    },
    /// The system does not let the node listen.
    #[error("can't listen at {address}: {error}; does an older program of this node still run?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason, mostly `AddrInUse`.
        error: io::Error,
    },
    /// The address can be reached from elsewhere, and nothing protects the node.
    #[error(
        "{0} is not loopback: give the node keys (`keys(dir)`, with files by \
         `cargo xtask cluster-keys`), or say `insecure()` if the network itself is protected"
    )]
    Insecure(SocketAddr),
    /// The cookie's file can't be read or made.
    #[error("the cookie's file {}: {error}", path.display())]
    Cookie {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// Other users of the machine may read the cookie.
    #[error("other users may read the cookie's file {}: `chmod 600` it", _0.display())]
    CookieIsPublic(PathBuf),
    /// The cookie is empty.
    #[error("the cookie is empty: any node could join")]
    CookieIsEmpty,
    /// No cookie, and no home folder for its file.
    #[error("no cookie: say `cookie(text)` or `cookie_file(path)`, because HOME is not set")]
    NoCookie,
    /// A file of the keys can't be read.
    #[error(
        "the key file {}: {error}; `cargo xtask cluster-keys` of Ganger's repository writes such",
        path.display()
    )]
    KeyFile {
        /// The file: `ca.pem`, `node.pem` or `node.key`.
        path: PathBuf,
        /// Why.
        error: String,
    },
    /// Other users of the machine may read the secret key, or write it.
    #[error("other users may read or write the key file {}: `chmod 600` it", _0.display())]
    KeyIsPublic(PathBuf),
    /// The node's own certificate would be refused by all nodes.
    #[error("the certificate {}: {why}", path.display())]
    OwnCertificate {
        /// `node.pem`.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// The node's certificate is for other names.
    #[error("the certificate {} is not for the node's name {name:?}", path.display())]
    OtherName {
        /// `node.pem`.
        path: PathBuf,
        /// The node's name.
        name: String,
    },
    /// A text of the settings is too long.
    #[error("the {0} has more than 255 bytes")]
    TooLong(&'static str),
    /// The engine's scheduler can't start.
    #[error("the engine's scheduler can't start: {0}")]
    Scheduler(Box<dyn std::error::Error + Send + Sync>),
}
