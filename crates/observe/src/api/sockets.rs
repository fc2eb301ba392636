//! The open sockets of schedulers, and the query for a page of them.

use super::mistake::{QueryError, shown};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The number of sockets without a wish.
const TOP: u32 = 100;

/// The most sockets in an answer.
const MOST: u32 = 1_000;

/// The answer of `/api/v1/sockets`: a page of the open sockets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sockets {
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// The number of open sockets in the schedulers asked for.
    pub open: u64,
    /// The numbers of the schedulers driven by `ganger-net`: only their sockets are known.
    pub driven: Vec<u64>,
    /// The sockets, by the number of their scheduler and their ids. For the next page of a
    /// scheduler, ask with the last id as `after`.
    pub sockets: Vec<Socket>,
}

/// An open socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Socket {
    /// The number of its scheduler.
    pub scheduler: u64,
    /// Its id in the network of its scheduler, from 1 up. Two sockets never have the same.
    pub id: u64,
    /// The kind: `tcp_listener`, `tcp`, `unix_listener`, `unix`, `udp`, `pipe`, `child`, `signal`
    /// or `call`.
    pub kind: String,
    /// The address of this side, if any.
    pub local: Option<String>,
    /// The address of the peer, if any.
    pub peer: Option<String>,
    /// The operations that wait until it is ready, at most 16.
    pub waits: Vec<SocketWait>,
}

/// An operation that waits until a socket is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketWait {
    /// Whether it waits for room to write; otherwise it waits for something to read, or to accept.
    pub is_write: bool,
    /// The PID of its process, where the process is known.
    pub pid: Option<String>,
    /// The number of that process's scheduler, where the endpoint shows the scheduler.
    pub scheduler: Option<u64>,
    /// The name or type of the process.
    pub name: Option<String>,
    /// The time since the last turn of that process began. The wait began in that turn, or before
    /// where the process waits for several things.
    pub since_ns: Option<u64>,
}

/// A query: a page of the open sockets.
///
/// ```
/// use ganger_observe::api::SocketsQuery;
///
/// let query: SocketsQuery = "top=10&scheduler=1&after=7".parse()?;
/// assert_eq!((query.top, query.scheduler, query.after), (10, Some(1), 7));
/// assert_eq!(query.to_string().parse(), Ok(query));
/// # Ok::<(), ganger_observe::api::QueryError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketsQuery {
    /// The number of sockets in the answer, from 1 to 1,000. Default: 100.
    pub top: u32,
    /// The sockets have ids above this. Default: 0, all. With an id, the query names the scheduler.
    pub after: u64,
    /// The number of the scheduler. Default: all.
    pub scheduler: Option<u64>,
}

impl Default for SocketsQuery {
    fn default() -> Self {
        Self {
            top: TOP,
            after: 0,
            scheduler: None,
        }
    }
}

impl FromStr for SocketsQuery {
    type Err = QueryError;

    /// Reads a query as it is in an address, behind the `?`. O(length).
    fn from_str(text: &str) -> Result<Self, QueryError> {
        let mut query = Self::default();
        let mut seen = [false; 3];
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            let place = match &*name {
                "top" => {
                    let number = value.parse().ok();
                    let number = number.filter(|it| (1..=MOST).contains(it));
                    query.top = number.ok_or_else(|| QueryError::SocketsTop(shown(&value)))?;
                    0
                }
                "after" => {
                    let number = value.parse().ok();
                    query.after = number.ok_or_else(|| QueryError::After(shown(&value)))?;
                    1
                }
                "scheduler" => {
                    let number = value.parse().ok();
                    let wrong = || QueryError::Scheduler(shown(&value));
                    query.scheduler = Some(number.ok_or_else(wrong)?);
                    2
                }
                _ => return Err(QueryError::UnknownOfSockets(shown(&name))),
            };
            if std::mem::replace(&mut seen[place], true) {
                return Err(QueryError::Twice(name.into_owned()));
            }
        }
        if query.after > 0 && query.scheduler.is_none() {
            return Err(QueryError::AfterOfNone);
        }
        Ok(query)
    }
}

/// The query as it is in an address, behind the `?`.
impl fmt::Display for SocketsQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "top={}", self.top)?;
        if let Some(scheduler) = self.scheduler {
            write!(f, "&scheduler={scheduler}&after={}", self.after)?;
        }
        Ok(())
    }
}
