//! References to children.

use ganger_proc_api::Pid;
use std::fmt;
use std::sync::Arc;

/// A child, by its name or the PID of its process. Among children of the same name, the oldest.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChildRef {
    /// Its name.
    Name(Arc<str>),
    /// Its process.
    Pid(Pid),
}

impl From<&str> for ChildRef {
    fn from(name: &str) -> Self {
        Self::Name(name.into())
    }
}

impl From<String> for ChildRef {
    fn from(name: String) -> Self {
        Self::Name(name.into())
    }
}

impl From<Pid> for ChildRef {
    fn from(pid: Pid) -> Self {
        Self::Pid(pid)
    }
}

impl fmt::Display for ChildRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name:?}"),
            Self::Pid(pid) => write!(f, "{pid}"),
        }
    }
}
