//! Process identifiers and their text form.

use super::interner::Origin;
use super::name::{self, Find, HostName, NameError, NodeName};
use std::fmt;
use std::str::FromStr;

/// Names a process: an optional node, a host on it, and a number.
///
/// Sixteen bytes (so is `Option<Pid>`) and `Copy`. A PID without a node names a process of the node
/// that uses it. Its text form is `{host|id}` or `{node@host|id}`.
///
/// On its own node, a PID with and without the node names the same process for every call with a
/// PID. The two are not equal, so compare like with like: a scheduler gives the PIDs of its
/// processes without a node. A PID among the payloads of a message to another node needs its node
/// ([`with_node`](Self::with_node)). The source of a message gets its node on the way.
///
/// ```
/// use ganger_proc_api::Pid;
/// let pid: Pid = "{main|42}".parse()?;
/// assert_eq!((pid.node(), pid.host().as_str(), pid.id()), (None, "main", 42));
/// assert_eq!(pid.to_string(), "{main|42}");
///
/// let error = "{main|fortytwo}".parse::<Pid>().unwrap_err();
/// assert_eq!(error.to_string(), "invalid PID at byte 6: expected a digit of the id, found 'f'");
/// let error = "{ma in|42}".parse::<Pid>().unwrap_err();
/// assert!(error.to_string().starts_with("invalid PID at byte 3: invalid host name: invalid"));
/// # Ok::<(), ganger_proc_api::ParsePidError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid {
    node: Option<NodeName>,
    host: HostName,
    id: u64,
}

const _: () = assert!(size_of::<Pid>() == 16 && size_of::<Option<Pid>>() == 16);

impl Pid {
    /// Creates the PID of process `id` of `host` on the node that uses this PID.
    #[must_use]
    pub const fn new(host: HostName, id: u64) -> Self {
        Self {
            node: None,
            host,
            id,
        }
    }

    /// Creates the PID of process `id` of `host` on `node`.
    #[must_use]
    pub const fn on_node(node: NodeName, host: HostName, id: u64) -> Self {
        Self {
            node: Some(node),
            host,
            id,
        }
    }

    /// Parses a PID whose names the program has already, for texts of strangers. Adds nothing.
    /// O(length).
    ///
    /// ```
    /// use ganger_proc_api::{NodeName, Pid};
    /// let from_a_peer = "{far@main|7}";
    /// assert!(Pid::parse_known(from_a_peer).is_err());
    /// // The peer is known by that name from now on.
    /// NodeName::new("far")?;
    /// assert_eq!(Pid::parse_known(from_a_peer)?.to_string(), from_a_peer);
    /// # Ok::<(), ganger_proc_api::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`ParsePidError`], as `parse` reports it; and when the program has made no such name, or
    /// parsed none.
    pub fn parse_known(text: &str) -> Result<Self, ParsePidError> {
        parse(text, Find::Known)
    }

    /// Returns the same PID with `node`, or, for `None`, relative to the node that uses it.
    #[must_use]
    pub const fn with_node(self, node: Option<NodeName>) -> Self {
        Self { node, ..self }
    }

    /// Returns the node, unless the PID is relative.
    #[must_use]
    pub const fn node(self) -> Option<NodeName> {
        self.node
    }

    /// Returns the host.
    #[must_use]
    pub const fn host(self) -> HostName {
        self.host
    }

    /// Returns the number within the host.
    #[must_use]
    pub const fn id(self) -> u64 {
        self.id
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node {
            Some(node) => write!(f, "{{{node}@{}|{}}}", self.host, self.id),
            None => write!(f, "{{{}|{}}}", self.host, self.id),
        }
    }
}

impl fmt::Debug for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The problem of a text that is not a PID, and the byte where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid PID at byte {at}: {problem}")]
pub struct ParsePidError {
    /// The byte at which the text stops being a PID; the text's length when it ends too early.
    pub at: usize,
    /// The problem.
    pub problem: PidProblem,
}

/// A problem of a PID's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PidProblem {
    /// The text differs from the only valid text at this place.
    #[error("expected {expected}, found {}", describe(*.found))]
    Unexpected {
        /// The valid text.
        expected: &'static str,
        /// The character found; `None` at the end of the text.
        found: Option<char>,
    },
    /// The node's name is not a valid name.
    #[error("invalid node name: {}", .0.problem)]
    Node(NameError),
    /// The host's name is not a valid name.
    #[error("invalid host name: {}", .0.problem)]
    Host(NameError),
    /// The id begins with a zero: a number has a single text form.
    #[error("the id has a leading zero")]
    LeadingZero,
    /// The id does not fit into 64 bits.
    #[error("the id is larger than {}", u64::MAX)]
    IdTooLarge,
}

fn describe(c: Option<char>) -> String {
    c.map_or_else(|| "the end of the text".to_owned(), |c| format!("{c:?}"))
}

impl FromStr for Pid {
    type Err = ParsePidError;

    /// Parses `{host|id}` or `{node@host|id}` and nothing else. O(length).
    ///
    /// When the whole text is a PID, its names are stored until the program ends. Parsed texts may
    /// add [`MAX_PARSED`](crate::MAX_PARSED) names, so strangers may use them up. Parse the texts
    /// of strangers by [`parse_known`](Pid::parse_known).
    fn from_str(text: &str) -> Result<Self, ParsePidError> {
        parse(text, Find::OrAdd(Origin::Parsed))
    }
}

fn parse(text: &str, find: Find) -> Result<Pid, ParsePidError> {
    let unexpected = |at: usize, expected| ParsePidError {
        at,
        problem: PidProblem::Unexpected {
            expected,
            found: text[at..].chars().next(),
        },
    };
    if !text.starts_with('{') {
        return Err(unexpected(0, "'{'"));
    }
    let bar = text
        .find('|')
        .ok_or_else(|| unexpected(text.len(), "'|' and an id"))?;
    let (node, host_at) = match text[1..bar].find('@') {
        Some(length) => (Some(&text[1..1 + length]), length + 2),
        None => (None, 1),
    };
    let host = &text[host_at..bar];

    if let Some(node) = node {
        name::check(node).map_err(|error| bad_name(1, error, PidProblem::Node))?;
    }
    name::check(host).map_err(|error| bad_name(host_at, error, PidProblem::Host))?;

    let id_at = bar + 1;
    let digits = text[id_at..].bytes().take_while(u8::is_ascii_digit).count();
    let end = id_at + digits;
    if digits == 0 {
        return Err(unexpected(id_at, "a digit of the id"));
    }
    if digits > 1 && text.as_bytes()[id_at] == b'0' {
        return Err(ParsePidError {
            at: id_at,
            problem: PidProblem::LeadingZero,
        });
    }
    if !text[end..].starts_with('}') {
        return Err(unexpected(end, "a digit of the id or '}'"));
    }
    if end + 1 != text.len() {
        return Err(unexpected(end + 1, "the end of the text"));
    }
    let id = text[id_at..end].parse().map_err(|_| ParsePidError {
        at: id_at,
        problem: PidProblem::IdTooLarge,
    })?;

    let node = node
        .map(|node| {
            NodeName::find(node, find).map_err(|error| bad_name(1, error, PidProblem::Node))
        })
        .transpose()?;
    let host =
        HostName::find(host, find).map_err(|error| bad_name(host_at, error, PidProblem::Host))?;
    Ok(Pid { node, host, id })
}

fn bad_name(start: usize, error: NameError, kind: fn(NameError) -> PidProblem) -> ParsePidError {
    ParsePidError {
        at: start + error.at,
        problem: kind(error),
    }
}
