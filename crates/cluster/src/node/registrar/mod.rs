//! The embedded store: a process at a node is the authority, and the other nodes ask it.
//!
//! **Problem.** A cluster without a broker needs a place that decides on the owner of a name. The
//! place must remember its answers, whatever happens to its program and its machine.
//!
//! **Rejected.** A vote of the nodes that can hear each other: without a majority that is known in
//! advance two halves of a cluster both decide.
//!
//! **Protocol.**
//! 1. The *registrar*, a process with a well-known name, carries out what has come since its last
//!    step, has the changes put on the disk in a single write (`store/log.rs`), and then answers.
//! 2. Each node has a *client*, a process that finds the registrar. Questions go from the caller's
//!    thread straight to the registrar, on the control lane.
//! 3. A *watch* is a question that the registrar answers when it has changes after a revision, and
//!    the client then asks the next. So nothing is left of a watcher that is gone, and a slow
//!    watcher gets more at a time.
//! 4. The end of the session is the answer to an open question: for a write the outcome is unknown.
//!
//! The registrar is a single authority: consistent, and not available while its node is away.
//!
//! The module may import the store, and parts of nodes that know no builder.

mod authority;
mod calls;
mod client;

pub(crate) use authority::Authority;
pub(crate) use calls::types;
pub(crate) use client::Client;

use crate::store::Store;
use std::path::PathBuf;
use std::sync::Arc;

/// The name of the process.
pub(crate) const NAME: &str = "ganger.registrar";

/// The embedded store of a cluster, as [`Builder::store`](crate::Builder::store) takes it: at one
/// node a file, and at the others the name of this node.
///
/// It is a single authority: consistent, and not available while its node is away. Then names and
/// locks are held until half of their lease has passed, and given up.
///
/// ```no_run
/// # use ganger_cluster::{Cluster, Registrar, Twin};
/// # use ganger_proc_api::BoxError;
/// # use ganger_sched::Handle;
/// # fn join(alpha: &Handle, beta: &Handle, twin: &Twin) -> Result<(), BoxError> {
/// let registrar = Registrar::file("/var/lib/shop/registrar");
/// Cluster::builder().engine(twin.port()).store(registrar).join(alpha)?;
/// Cluster::builder().engine(twin.port()).store(Registrar::at("alpha")).join(beta)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Registrar(Place);

#[derive(Debug, Clone)]
enum Place {
    File(PathBuf),
    Node(String),
}

impl Registrar {
    /// Makes this node the authority, which keeps its entries in this file. The entries of the file
    /// hold from the beginning; a missing file is made, and so is a file of the same name with
    /// `.lock`. The folder must be on a disk of this machine, since others may not keep what they
    /// confirm.
    ///
    /// [`Builder::join`](crate::Builder::join) opens the file, and so blocks.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Place::File(path.into()))
    }

    /// Takes the node of this name as the authority.
    pub fn at(node: impl Into<String>) -> Self {
        Self(Place::Node(node.into()))
    }

    /// Returns the node of the authority, or the file of this node.
    pub(crate) fn place(self) -> Result<String, PathBuf> {
        match self.0 {
            Place::Node(node) => Ok(node),
            Place::File(path) => Err(path),
        }
    }
}

/// The store of a node, before the node is there: a [`Registrar`], or any [`Store`].
#[derive(Clone)]
pub struct StoreSource(pub(crate) Source);

#[derive(Clone)]
pub(crate) enum Source {
    Store(Arc<dyn Store>),
    Registrar(Registrar),
}

impl From<Registrar> for StoreSource {
    fn from(registrar: Registrar) -> Self {
        Self(Source::Registrar(registrar))
    }
}

impl From<Arc<dyn Store>> for StoreSource {
    fn from(store: Arc<dyn Store>) -> Self {
        Self(Source::Store(store))
    }
}

impl std::fmt::Debug for StoreSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Source::Store(store) => f.debug_tuple("Store").field(&store.describe()).finish(),
            Source::Registrar(registrar) => registrar.fmt(f),
        }
    }
}
