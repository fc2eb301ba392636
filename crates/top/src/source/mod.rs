//! Where the answers come from: an endpoint over HTTP, or the demo.

mod address;
mod demo;
mod http;
mod remote;

pub use address::Address;
pub use demo::Demo;
pub use remote::Remote;

use crate::fault::Fault;
use ganger_observe::api::{
    Acted, Groups, Letters, Nodes, Processes, ProcessesQuery, Snapshot, Sockets, SocketsQuery,
    Tree, Waits,
};
use std::io::Write;
use std::time::Duration;

/// A program whose schedulers are shown. Each question blocks until its answer.
///
/// # Errors
/// Each returns a [`Fault`] in the place of an answer, and [`Fault::NotHere`] where the program
/// has no such thing.
#[expect(
    clippy::missing_errors_doc,
    reason = "they are in the trait's own documentation"
)]
pub trait Source: Send + Sync {
    /// Returns the name of the program for people, such as its address.
    fn name(&self) -> String;
    /// Returns all schedulers.
    fn snapshot(&self) -> Result<Snapshot, Fault>;
    /// Returns the first processes of a list.
    fn processes(&self, query: &ProcessesQuery) -> Result<Processes, Fault>;
    /// Returns a single process.
    fn process(&self, scheduler: u64, pid: &str) -> Result<Processes, Fault>;
    /// Groups of processes.
    fn groups(&self) -> Result<Groups, Fault>;
    /// Supervisors and children.
    fn tree(&self) -> Result<Tree, Fault>;
    /// Waits for each other.
    fn waits(&self) -> Result<Waits, Fault>;
    /// Returns a page of the open sockets.
    fn sockets(&self, query: &SocketsQuery) -> Result<Sockets, Fault>;
    /// Nodes of a cluster, and their peers.
    fn nodes(&self) -> Result<Nodes, Fault>;
    /// Returns dead letters.
    fn letters(&self) -> Result<Letters, Fault>;
    /// Does something to a process: the name of one of
    /// [`Snapshot::actions`](ganger_observe::api::Snapshot::actions).
    fn act(&self, action: &str, scheduler: u64, pid: &str) -> Result<Acted, Fault>;
    /// Writes a trace of the last seconds, as a file for Perfetto.
    fn trace(&self, time: Duration, to: &mut dyn Write) -> Result<(), Fault>;
}
