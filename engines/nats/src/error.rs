//! Why the engine can't start.

use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// Why the engine can't start. In
/// [`EngineError::Other`](ganger_cluster::EngineError::Other).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NatsError {
    /// The list of servers is empty.
    #[error("no server is named: Nats::new(\"nats://broker:4222\")")]
    NoServer,
    /// A server of the list is no address.
    #[error("{server:?} is not the address of a server: {why}")]
    Server {
        /// The text, without a name and a password.
        server: String,
        /// Why not.
        why: io::Error,
    },
    /// The name of the cluster has no byte, or more than
    /// [`MAX_NAME`](ganger_cluster::MAX_NAME).
    #[error("the name of the cluster has {0} bytes, and must have 1 to 255")]
    Cluster(usize),
    /// The server is another machine, and nothing would hide the frames.
    #[error(
        "{0} is another machine: use tls(…) or tls_root(…), or say insecure() if the network is \
         private"
    )]
    Insecure(String),
    /// The credentials can't be used.
    #[error("the credentials {path} can't be used: {why}")]
    Credentials {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// The broker does not know the user, or the key does not fit.
    #[error("the broker has refused this user: {0}")]
    Denied(String),
    /// The broker does not answer the node's question at the start: the user lacks rights of the
    /// node. The text names all of them.
    #[error("the broker gives no answer: the user needs the rights of this node, {0}")]
    Silent(String),
    /// The files for TLS can't be used.
    #[error("TLS can't be set up: {0}")]
    Tls(String),
    /// No server has answered in time.
    #[error("no server of {servers} could be used within {within:?}: {why}")]
    Unreachable {
        /// The list.
        servers: String,
        /// How long the engine has tried.
        within: Duration,
        /// The last failure.
        why: String,
    },
    /// The broker's messages are too short for frames.
    #[error("the broker's max_payload is {0}, and frames need at least 4096")]
    SmallPayload(usize),
    /// The broker's messages are too short for entries of the store.
    #[error("the broker's max_payload is {0}, and the store needs at least 65536")]
    SmallForStore(usize),
    /// The broker has no JetStream for this user, or gives no answer about it.
    #[error(
        "the broker has no JetStream for the store ({0}): start nats-server with \
         `jetstream: enabled` and a `store_dir`, and let the user publish to `$JS.API.>`, \
         `$JS.FC.>` and `$KV.>`, and subscribe to `_INBOX.>`"
    )]
    NoJetStream(String),
    /// The cluster of servers can't keep three copies of the store.
    #[error(
        "the store needs three servers with JetStream, or a single server without a cluster: {0}"
    )]
    FewServers(String),
    /// The store's stream would lose acknowledged writes by its settings.
    #[error(
        "the stream {stream} would lose acknowledged writes by its settings: {faults}. Edit or \
         delete the stream"
    )]
    Stream {
        /// The name of the stream.
        stream: String,
        /// The settings.
        faults: String,
    },
    /// The system gives no thread or no runtime.
    #[error("no thread for the engine: {0}")]
    Thread(#[from] io::Error),
}
