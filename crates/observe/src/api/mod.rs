//! The JSON of the [endpoint](crate::serve()) as typed values, for its viewers too.
//!
//! Each answer carries the [`VERSION`] of this module. [`from_json`] reads an answer, and refuses
//! another version by name. Counts are cumulative since the start of their scheduler: a viewer
//! takes the difference of two answers for a rate. Times are in nanoseconds.
//!
//! ```
//! use ganger_observe::api::{self, Letters, ReadError};
//!
//! let letters: Letters = api::from_json(br#"{"version": 1, "schedulers": []}"#)?;
//! assert!(letters.schedulers.is_empty());
//! let newer = api::from_json::<Letters>(br#"{"version": 2, "letters": []}"#);
//! assert!(matches!(newer, Err(ReadError::OtherVersion { theirs: 2 })));
//! # Ok::<(), ReadError>(())
//! ```

mod acted;
mod answers;
mod counts;
mod inspected;
mod measures;
mod mistake;
mod nodes;
mod order;
mod owned;
mod query;
mod recent;
mod sockets;
mod state;
mod views;

pub use acted::{Acted, Action};
pub use answers::{
    Letter, Letters, LongStep, Process, Processes, Scheduler, SchedulerLetters, Snapshot, Threads,
    Timers,
};
pub use counts::Counts;
pub use inspected::Inspected;
pub use measures::{Distribution, Distributions, OfType, ProcessCounts, Wait, WorkerTimes};
pub use mistake::QueryError;
pub use nodes::{Node, Nodes, Peer};
pub use order::By;
#[cfg(feature = "serve")]
pub(crate) use order::read_period;
pub use owned::{ClusterName, ClusterNames, NodeLease, NodeStore};
pub use query::{Field, Filter, ProcessesQuery, Term};
pub use recent::{ProcessEvent, ProcessEvents};
pub use sockets::{Socket, SocketWait, Sockets, SocketsQuery};
pub use state::State;
pub use views::{Alarm, Group, Groups, Head, Tree, TreeNode, WaitFor, Waits};

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The version of this module. A change that an older reader can't read raises it.
pub const VERSION: u32 = 1;

/// Why an answer can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The endpoint has another version of this module.
    #[error(
        "the endpoint speaks version {theirs} of the API, and this reader version {VERSION}: \
         take a reader of the endpoint's release"
    )]
    OtherVersion {
        /// The version of the endpoint.
        theirs: u32,
    },
    /// The bytes are no answer of an endpoint.
    #[error("not an answer of an endpoint of Ganger: {0}; check the address and the path")]
    Malformed(#[from] serde_json::Error),
}

/// Reads an answer. O(length).
///
/// # Errors
/// [`ReadError`], before anything else is read when the version is another.
pub fn from_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, ReadError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let Versioned { version } = serde_json::from_slice(json)?;
    if version != VERSION {
        return Err(ReadError::OtherVersion { theirs: version });
    }
    Ok(serde_json::from_slice(json)?)
}
